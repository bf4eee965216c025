/* What transitions of the model do, each with the rule of the protocol that it stands for. */

/* ---- Helpers ---- */

/* found = 1 + index of update u among the first n entries of server r, 0 if it is not there. */
inline find(r, update, n) {
  found=0;
  do :: k<n -> if :: log[r*SLOTS+k]==update -> found=k+1; break :: else fi; k++ :: else -> break od;
  k=0
}

inline clear_log_from(r, index) {
  k=index; do :: k<SLOTS -> log[r*SLOTS+k]=0; k++ :: else -> break od; k=0
}

inline clear_leases(r) { lease[r*SERVERS]=0; lease[r*SERVERS+1]=0; lease[r*SERVERS+2]=0 }

inline stop_being_primary(r) { primary[r]=0; joint[r]=0; copying[r]=0; reconciled[r]=0; clear_leases(r) }

/* All that a process knows is lost. */
inline forget(r) {
  clear_log_from(r, 0); length[r]=0; committed[r]=0; stop_being_primary(r);
  epoch[r]=0; members[r]=0; proposed[r]=0; proposed_members[r]=0; learner_of[r]=0
}

/* Every acknowledged update is among the first n entries of server r. */
inline assert_nothing_lost(r, n) {
  j=1; do :: j<=UPDATES -> if :: answered[j] -> find(r, j, n); assert(found>0) :: else fi; j++ :: else -> break od;
  j=0; found=0
}

/* The compare-and-swap takes effect; its reply is a transition of its own. */
inline swap(r, new_members) {
  proposed_members[r]=new_members; proposed[r]=record_epoch+1;
  if :: !STALE_RECORDS -> record_primary=0; record_members=0 :: else fi;
  record_epoch++; record_primary=r; record_members=proposed_members[r]
}

/* ---- One update ---- */

/* A worker sends or resends update u. Applied already: acknowledged again. Known: waits. New: appended and prepared. */
inline receive_update(p) {
  choose_update(); find(p, u, length[p]);
  if
  :: STEP(answer) && found>0 && found<=committed[p] -> if :: epoch[p]>=generation -> answered[u]=1 :: else fi
#ifdef NO_DEDUPLICATION
  :: STEP(append) && NUMBER_IS(length[p]+1) && length[p]<SLOTS && !HANDED_OVER(p) -> append_and_prepare(p)
#else
  :: STEP(append) && NUMBER_IS(length[p]+1) && found==0 && length[p]<SLOTS && !HANDED_OVER(p) -> append_and_prepare(p)
#endif
  :: else -> refuse()
  fi;
  u=0; found=0
}

inline append_and_prepare(p) {
  log[p*SLOTS+length[p]]=u; prepared[epoch[p]*SLOTS+length[p]]=u; length[p]=length[p]+1
}

/* A member or learner accepts entry x of epoch e, without a gap, and acknowledges. A different entry is overwritten, and what
 * lay behind it goes. */
inline accept_prepare(r) {
  choose_prepare(r);
  if
  :: ACCEPTS(r, e) && prepared[e*SLOTS+x-1]>0 && x<=length[r]+1 && ACKED_OR_BASE(r, e)==x-1 ->
     if
     :: x<=committed[r] -> assert(log[r*SLOTS+x-1]==prepared[e*SLOTS+x-1])   /* I7 */
     :: x>committed[r] && x<=length[r] && log[r*SLOTS+x-1]==prepared[e*SLOTS+x-1] -> skip
     :: else -> clear_log_from(r, x-1); log[r*SLOTS+x-1]=prepared[e*SLOTS+x-1]; length[r]=x
     fi;
     acked[e*SERVERS+r]=x
  :: else -> refuse()
  fi;
  x=0; e=0
}

/* Every member, and the joint learner, has acknowledged (I4). */
inline commit_entry(p) {
  x=log[p*SLOTS+committed[p]]; committed[p]=committed[p]+1;
  if
  :: epoch[p]<generation -> skip                                             /* rolled back with its generation */
  :: else ->
     if :: truth[committed[p]]==0 -> truth[committed[p]]=x :: else -> assert(truth[committed[p]]==x) fi;   /* I7 */
     k=1; do :: k<=SLOTS -> assert(!(truth[k]==x && k!=committed[p])); k++ :: else -> break od; k=0        /* I6 */
  fi;
  if :: announced[epoch[p]]<committed[p] -> announced[epoch[p]]=committed[p] :: else fi;
  x=0
}

/* A secondary commits what it knows to be committed and has acknowledged in this epoch. */
inline hear_commit(r) {
  committed[r]=committed[r]+1;
  assert(epoch[r]<generation || log[r*SLOTS+committed[r]-1]==truth[committed[r]])   /* I7 */
}

/* A read shows every update acknowledged before it (I11). */
inline serve_read(p) { assert_nothing_lost(p, committed[p]) }

/* ---- Leases ---- */

/* A secondary without an open proposal, or the joint learner, answers a beacon of its epoch in time, and so promises. */
inline answer_beacon(p) {
  choose_other();
  if
  :: x!=p && !primary[x] && proposed[x]==0 && !HANDED_OVER(p) &&
     ((!fresh[x] && epoch[x]==epoch[p] && (members[p]&BIT(x))) || (learner_of[x]==epoch[p] && (joint[p]&BIT(x)))) ->
     promised[x]=1; lease[p*SERVERS+x]=1
  :: else -> refuse()
  fi;
  x=0
}

inline lose_lease(p) { choose_other(); lease[p*SERVERS+x]=0; x=0 }

/* The controller knows that the incarnation which is primary in the record is dead: for this epoch its promises are void. */
inline release_of_the_dead() { proved_dead=proved_dead|BIT(record_epoch) }

/* A primary that has drained (nothing more to commit) says so, and neither reads nor appends in this epoch again. */
inline hand_over_bucket(p) { handed_over=handed_over|BIT(epoch[p]) }

/* ---- Changes of the configuration ---- */

/* A secondary that promises nothing proposes itself. The old primary leaves, unless it handed over. */
inline propose_promotion(r) {
#ifdef BLIND_WRITE
  x=(record_primary==r -> record_members : (record_members & ~BIT(record_primary)) | BIT(r));
#else
  x=record_members & ~BIT(record_primary);
#endif
  if
  :: handed_over&BIT(record_epoch) -> x=record_members
  :: !STAYS_IN_SYNC(x, record_primary) -> x=record_members
  :: else
  fi;
  swap(r, x); x=0
}

/* The primary drops a member: silent, dead, or asked to leave. That is safe at any time, so proof only makes it quicker. */
inline propose_drop(p) {
  choose_other();
  if
  :: x!=p && (members[p]&BIT(x)) && STAYS_IN_SYNC(members[p] & ~BIT(x), x) -> swap(p, members[p] & ~BIT(x))
  :: else -> refuse()
  fi;
  x=0
}

/* A server outside the configuration begins to copy. */
inline start_learner(p) {
  choose_other();
  if
  :: x!=p && !(members[p]&BIT(x)) && !RECORD_NAMES(x) && proposed[x]==0 ->
     forget(x); fresh[x]=1; learner_of[x]=epoch[p]; acked[epoch[p]*SERVERS+x]=0; copying[p]=BIT(x)
  :: else -> refuse()
  fi;
  x=0
}

/* The copy is complete: from now on commits wait for the learner and the lease counts it. Or it is abandoned. */
inline end_copying(p) {
  x=ONLY(copying[p]);
  if
  :: STEP(abandon) -> copying[p]=0
  :: STEP(turn_joint) -> joint[p]=copying[p]; copying[p]=0; lease[p*SERVERS+x]=0
  fi;
  x=0
}

/* The joint learner has acknowledged all that is committed, and all that the primary took over (it may have been committed
 * before): it becomes a member. Or it is abandoned. */
inline end_joint(p) {
  x=ONLY(joint[p]);
  if
  :: STEP(abandon) -> joint[p]=0; lease[p*SERVERS+x]=0
  :: STEP(add) && NUMBER_IS(record_epoch+1) && MAY_SWAP(p) && CAUGHT_UP(p, x) && learner_of[x]==epoch[p] && !RECORD_NAMES(x) ->
     swap(p, members[p] | BIT(x)); dead[x]=0
  fi;
  x=0
}

/* All members are proved dead: one server comes back as the only member, with what its disk holds; here nothing. */
inline recover_bucket(r) {
  if
  :: ALL_GONE ->
     j=1; do :: j<=UPDATES -> assert(!answered[j] || crashes>=MIN_IN_SYNC); answered[j]=0; j++ :: else -> break od; j=0;
     j=1; do :: j<=SLOTS -> truth[j]=0; j++ :: else -> break od; j=0
  :: else
  fi;
  swap(r, BIT(r)); dead[r]=0; generation=record_epoch
}

/* The proposer hears that its compare-and-swap took effect, perhaps late. It prepares its whole log in the new epoch, and reads
 * once that is committed. */
inline hear_outcome(r) {
  e=proposed[r]; x=proposed_members[r];
  if :: e==generation -> forget(r); fresh[r]=0 :: else fi;
  if :: e==record_epoch && !primary[r] -> assert_nothing_lost(r, length[r]) :: else fi;   /* I5 */
  if :: !primary[r] -> reconciled[r]=length[r] :: else fi;
  base[e]=committed[r]; announced[e]=committed[r];
  epoch[r]=e; members[r]=x; primary[r]=1; joint[r]=0; copying[r]=0; clear_leases(r);
  proposed[r]=0; proposed_members[r]=0;
  k=0; do :: k<length[r] -> prepared[e*SLOTS+k]=log[r*SLOTS+k]; k++ :: else -> break od; k=0;
  e=0; x=0
}

/* A member, or a learner that was added, learns a record with another primary. The log stays as it is. */
inline learn_record(r) {
  choose_record(r);
  if
  :: epoch[r]<e && primary_of[e]!=r && (members_of[e]&BIT(r)) && (!fresh[r] || (learner_of[r]>0 && learner_of[r]<e)) ->
     stop_being_primary(r); epoch[r]=e; members[r]=members_of[e]; learner_of[r]=0; fresh[r]=0;
#ifdef CUT_TO_COMMIT_POINT
     clear_log_from(r, committed[r]); length[r]=committed[r];
#endif
     skip
  :: else -> refuse()
  fi;
  e=0
}

/* A primary learns that it is no member any more. */
inline leave(r) { stop_being_primary(r); members[r]=0 }

/* The process dies, and its server returns with nothing. */
inline lose_memory(r) {
  crashes++; dead[r]=1; forget(r); promised[r]=0;
#ifdef RESTART_KEEPS_MEMBERSHIP
  fresh[r]=0
#else
  fresh[r]=1
#endif
}
