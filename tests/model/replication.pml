/* The replication protocol of one bucket: three servers, a controller with one record, workers that retry U updates.
 *
 * Read from the end: `bucket` lists the transitions; each is an inline block above it, with the rule that it stands for.
 * Checked: I5 (acknowledged updates are in every later primary), I6 (applied once), I7 (committed logs agree), I11 (a read
 * under a lease shows what was acknowledged before it), and that losing an acknowledged update takes MIN_IN_SYNC crashes.
 *
 * Messages lie in pools that are never emptied, which covers loss, delay, reordering and duplication; a pause is a server
 * that is not scheduled. A crash loses the memory; the server returns as a fresh incarnation. A compare-and-swap takes effect
 * at once and its reply comes late. An update is a number, a log entry one update, a snapshot the prepares it replaces.
 * Seeded faults are the #ifdefs: each leaves out one rule, and `check` demands that SPIN notices.
 * With -DTRACE the model follows the trace in trace.pml (see `replay`). */

/* Bounds. */
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef SLOTS                   /* log entries */
#define SLOTS 2
#endif
#ifndef EPOCHS
#define EPOCHS 4
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef MEMBERS                 /* the first configuration, a set of servers; server 0 is its primary */
#define MEMBERS 7
#endif
#ifndef MIN_IN_SYNC
#define MIN_IN_SYNC 1
#endif
/* Parts of the protocol that a run may leave out, to afford larger bounds. */
#ifndef PROOF                   /* proved deaths */
#define PROOF 1
#endif
#ifndef HAND_OVER
#define HAND_OVER 1
#endif
#ifndef RECOVERY                /* all members may die; without it the last holder of the data does not */
#define RECOVERY 1
#endif

#ifndef STALE_RECORDS           /* a server may learn a record that has been replaced since */
#define STALE_RECORDS 1
#endif

#define SERVERS 3
#define BIT(x) (1<<(x))
#define SIZE(set) (((set)&1)+(((set)>>1)&1)+(((set)>>2)&1))
#define ONLY(set) ((set)>>1)    /* the server in a set of one */

/* The controller's record, changed by compare-and-swap only; earlier ones are kept for STALE_RECORDS. */
byte record_epoch=1;
byte primary_of[EPOCHS+1]; byte members_of[EPOCHS+1];
#define record_primary primary_of[record_epoch]
#define record_members members_of[record_epoch]

/* Messages. The primary of an epoch is unique, so the epoch names the sender. */
byte prepared[(EPOCHS+1)*SLOTS];    /* by epoch and lsn: the update */
byte acked[(EPOCHS+1)*SERVERS];     /* by epoch and server: the last lsn acknowledged */
byte announced[EPOCHS+1];           /* by epoch: the commit point */
byte base[EPOCHS+1];                /* by epoch: what its primary had committed when it began */
byte proved_dead=0;                 /* epochs, as a set, whose primary is proved dead */
byte handed_over=0;                 /* epochs, as a set, whose primary has released them */

/* Servers. Of arrays by two indices the first is the owner. */
bool fresh[SERVERS];                /* lost its memory, or never had the bucket: no member until it was a learner */
bool primary[SERVERS];              /* takes itself for the primary of its epoch */
byte epoch[SERVERS];
byte members[SERVERS];              /* configuration of that epoch */
byte copying[SERVERS];              /* primary: the learner that is not counted yet */
byte joint[SERVERS];                /* primary: the learner whose acknowledgements and promises are needed too */
byte length[SERVERS]; byte committed[SERVERS];
byte reconciled[SERVERS];           /* primary: the lsn to commit before the first read */
byte learner_of[SERVERS];           /* learner: the epoch of its primary */
bool promised[SERVERS];             /* has promised some primary not to propose */
bool lease[SERVERS*SERVERS];        /* primary: the promise of this server has not run out */
byte proposed[SERVERS];             /* epoch of a compare-and-swap whose outcome is not known yet */
byte proposed_members[SERVERS];
byte log[SERVERS*SLOTS];

/* What really happened; no server sees it. */
bool answered[UPDATES+1];           /* update acknowledged to its worker */
byte truth[SLOTS+1];                /* by lsn: the committed update */
byte generation=0;                  /* epoch of the last recovery */
byte crashes=0;
bool dead[SERVERS];                 /* the incarnation that the record names, or last named, has crashed */

byte s, x, e, u, found, j, k;       /* scratch, 0 between transitions */

/* ---- Conditions ---- */

#ifdef LEARNER_NOT_JOINT
#define NEEDED(p) (members[p] & ~BIT(p))
#else
#define NEEDED(p) ((members[p]|joint[p]) & ~BIT(p))
#endif

#ifdef READ_WITHOUT_LEASE
#define HOLDS_LEASE(p) true
#else
#define HOLDS_PROMISE(p,r) ((NEEDED(p)&BIT(r))==0 || lease[(p)*SERVERS+(r)])
#define HOLDS_LEASE(p) (HOLDS_PROMISE(p,0) && HOLDS_PROMISE(p,1) && HOLDS_PROMISE(p,2))
#endif

#define HAS_ACKED(p,r,lsn) (acked[epoch[p]*SERVERS+(r)]>=(lsn))
#ifdef MAJORITY_COMMIT
#define COUNTS(p,r,lsn) ((members[p]&BIT(r)) && ((r)==(p) || HAS_ACKED(p,r,lsn)) -> 1 : 0)
#define ALL_ACKED(p,lsn) (COUNTS(p,0,lsn)+COUNTS(p,1,lsn)+COUNTS(p,2,lsn)>=2 || members[p]==BIT(p))
#else
#define NOT_MISSING(p,r,lsn) ((NEEDED(p)&BIT(r))==0 || HAS_ACKED(p,r,lsn))
#define ALL_ACKED(p,lsn) (NOT_MISSING(p,0,lsn) && NOT_MISSING(p,1,lsn) && NOT_MISSING(p,2,lsn))
#endif

#ifdef READ_BEFORE_RECONCILING
#define RECONCILED(p) true
#else
#define RECONCILED(p) (committed[p]>=reconciled[p])
#endif

/* Entries up to the base of the epoch are not prepared again; a learner needs them all. */
#define ACKED_OR_BASE(r,e) ((learner_of[r]>0 || acked[(e)*SERVERS+(r)]>base[e]) -> acked[(e)*SERVERS+(r)] : base[e])

#ifdef EARLY_ADD
#define CAUGHT_UP(p,r) true
#else
#define CAUGHT_UP(p,r) HAS_ACKED(p,r,length[p])
#endif

#ifdef BLIND_WRITE
#define MAY_SWAP(p) (proposed[p]==0 && record_epoch<EPOCHS)
#else
#define MAY_SWAP(p) (proposed[p]==0 && record_epoch<EPOCHS && epoch[p]==record_epoch)
#endif

/* D at the holder, counted from sending, ends before G at the granter, counted from receipt. */
#ifdef BAD_CLOCK
#define PROMISE_RAN_OUT(r) true
#else
#define PROMISE_RAN_OUT(r) (!lease[r] && !lease[SERVERS+(r)] && !lease[2*SERVERS+(r)])
#endif

#define IS_SECONDARY(r) (!primary[r] && !fresh[r] && (members[r]&BIT(r)))
#ifdef NO_FENCING
#define ACCEPTS(r,e) (!primary[r])
#else
#define ACCEPTS(r,e) ((learner_of[r]>0 && learner_of[r]==(e)) || (learner_of[r]==0 && IS_SECONDARY(r) && epoch[r]==(e)))
#endif
#define RECORD_NAMES(r) (record_members&BIT(r))
#define PROVED_DEAD(r) (dead[r] && RECORD_NAMES(r))
#define IS_GONE(r) (dead[r] || !RECORD_NAMES(r))
#define ALL_GONE (IS_GONE(0) && IS_GONE(1) && IS_GONE(2))
#define STAYS_AFTER(r) ((!IS_GONE(0) && (r)!=0) || (!IS_GONE(1) && (r)!=1) || (!IS_GONE(2) && (r)!=2))

#ifdef PROVED_BY_SUSPICION
#define PRIMARY_PROVED_DEAD true
#else
#define PRIMARY_PROVED_DEAD PROVED_DEAD(record_primary)
#endif

#ifdef RELEASE_IN_ANY_EPOCH
#define PROMISE_RELEASED(r) ((proved_dead|handed_over)!=0)
#else
#define PROMISE_RELEASED(r) (((proved_dead|handed_over)&BIT(epoch[r]))!=0)
#endif

#define HANDED_OVER(p) ((handed_over&BIT(epoch[p]))!=0)
#ifdef READ_AFTER_HAND_OVER
#define MAY_READ(p) (HOLDS_LEASE(p) && RECONCILED(p))
#else
#define MAY_READ(p) (HOLDS_LEASE(p) && RECONCILED(p) && !HANDED_OVER(p))
#endif

#ifdef SHRINK_BELOW_MIN_IN_SYNC
#define STAYS_IN_SYNC(set,leaver) true
#else
#define STAYS_IN_SYNC(set,leaver) (SIZE(set)>=MIN_IN_SYNC || dead[leaver])
#endif

#ifdef MOVED_ON_SUSPICION
#define MAY_RECOVER (ALL_GONE || SIZE(record_members)==1)
#else
#define MAY_RECOVER ALL_GONE
#endif

/* ---- Following a trace: each step must be the next line; what it chooses is in the line ---- */

#ifdef TRACE
mtype = { append, answer, accept, commit, hear, read, promise, expire, void, hand_over, proof, take_over, drop, copy, abandon,
          turn_joint, add, recover, outcome, learn, step_down, crash };
#include "trace.pml"                /* TRACE_LENGTH, trace_step, trace_server, trace_argument, trace_lsn */
short line=0;
#define STEP(name) (line<TRACE_LENGTH && trace_step[line]==name)
#define LSN_IS(n) (trace_lsn[line]==(n))
#define choose_server()  s=trace_server[line]
#define choose_other()   x=trace_argument[line]
#define choose_update()  u=trace_argument[line]
#define choose_prepare(r) e=trace_argument[line]; x=trace_lsn[line]
#define choose_record(r) e=trace_argument[line]
#define refuse() false
#else
#define STEP(name) true
#define LSN_IS(n) true
#define choose_server()  do :: s<SERVERS-1 -> s++ :: break od
#define choose_other()   do :: x<SERVERS-1 -> x++ :: break od
#define choose_update()  u=1; do :: u<UPDATES -> u++ :: break od
#ifdef NO_FENCING
#define choose_epoch(r)  e=1; do :: e<record_epoch -> e++ :: break od
#else
#define choose_epoch(r)  e=(learner_of[r]>0 -> learner_of[r] : epoch[r])
#endif
#define choose_prepare(r) choose_epoch(r); x=1; do :: x<SLOTS -> x++ :: break od
#define choose_record(r) e=record_epoch; do :: STALE_RECORDS && e>epoch[r]+1 && e>1 -> e-- :: break od
#define refuse() skip
#endif

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
  :: STEP(append) && length[p]<SLOTS && !HANDED_OVER(p) -> append_and_prepare(p)
#else
  :: STEP(append) && found==0 && length[p]<SLOTS && !HANDED_OVER(p) -> append_and_prepare(p)
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
inline propose_take_over(r) {
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

/* The joint learner has acknowledged all that is prepared: it becomes a member. Or it is abandoned. */
inline end_joint(p) {
  x=ONLY(joint[p]);
  if
  :: STEP(abandon) -> joint[p]=0; lease[p*SERVERS+x]=0
  :: STEP(add) && MAY_SWAP(p) && CAUGHT_UP(p, x) && learner_of[x]==epoch[p] && !RECORD_NAMES(x) ->
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

/* ---- The bucket ---- */

inline create_bucket() {
  primary_of[1]=0; members_of[1]=MEMBERS;
  do
  :: s<SERVERS ->
     if
     :: MEMBERS & BIT(s) -> epoch[s]=1; members[s]=MEMBERS; promised[s]=(s!=0); lease[s]=(s!=0)
     :: else -> fresh[s]=1
     fi;
     s++
  :: else -> break
  od;
  primary[0]=1; s=0
}

#define IDLE(p) (proposed[p]==0 && copying[p]==0 && joint[p]==0)

active proctype bucket() {
  d_step { create_bucket() }
  do
  :: atomic {
       choose_server();
       if
       :: (STEP(append) || STEP(answer)) && primary[s] -> receive_update(s)
       :: STEP(accept) && (ACCEPTS(s, epoch[s]) || ACCEPTS(s, learner_of[s])) -> accept_prepare(s)
       :: STEP(commit) && primary[s] && committed[s]<length[s] && LSN_IS(committed[s]+1) &&
            SIZE(members[s])>=MIN_IN_SYNC && ALL_ACKED(s, committed[s]+1) -> commit_entry(s)
       :: STEP(hear) && !primary[s] && !fresh[s] && committed[s]<announced[epoch[s]] && LSN_IS(committed[s]+1) &&
            ACKED_OR_BASE(s, epoch[s])>committed[s] -> hear_commit(s)
#ifndef NO_READ_CHECK
       :: STEP(read) && primary[s] && MAY_READ(s) -> serve_read(s)
#endif

       :: STEP(promise) && primary[s] -> answer_beacon(s)
       :: STEP(expire) && promised[s] && PROMISE_RAN_OUT(s) -> promised[s]=0
       :: STEP(void) && promised[s] && PROMISE_RELEASED(s) -> promised[s]=0
       :: STEP(proof) && PROOF && PRIMARY_PROVED_DEAD && (proved_dead&BIT(record_epoch))==0 -> release_of_the_dead()
       :: STEP(hand_over) && HAND_OVER && primary[s] && IDLE(s) && committed[s]==length[s] && members[s]!=BIT(s) &&
            !HANDED_OVER(s) -> hand_over_bucket(s)

       :: STEP(take_over) && IS_SECONDARY(s) && learner_of[s]==0 && !promised[s] && MAY_SWAP(s) -> propose_take_over(s)
       :: STEP(drop) && primary[s] && IDLE(s) && MAY_SWAP(s) -> propose_drop(s)
       :: STEP(copy) && primary[s] && IDLE(s) && MAY_SWAP(s) && members[s]!=7 -> start_learner(s)
       :: (STEP(abandon) || STEP(turn_joint)) && primary[s] && proposed[s]==0 && copying[s]!=0 -> end_copying(s)
       :: (STEP(abandon) || STEP(add)) && primary[s] && proposed[s]==0 && joint[s]!=0 -> end_joint(s)
       :: STEP(recover) && RECOVERY && proposed[s]==0 && record_epoch<EPOCHS && MAY_RECOVER -> recover_bucket(s)
       :: STEP(outcome) && proposed[s]>0 -> hear_outcome(s)
       :: STEP(learn) && proposed[s]==0 && epoch[s]<record_epoch -> learn_record(s)
       :: STEP(step_down) && proposed[s]==0 && primary[s] && epoch[s]<record_epoch && !RECORD_NAMES(s) -> leave(s)

       :: STEP(crash) && crashes<CRASHES && !dead[s] && (RECOVERY || STAYS_AFTER(s)) -> lose_memory(s)
#ifdef TRACE
       fi;
       s=0; line++; printf("matched %d\n", line)
     }
  :: line==TRACE_LENGTH -> assert(line<TRACE_LENGTH)
  :: atomic { do :: x<SERVERS*SERVERS-1 -> x++ :: break od; lease[x] -> lease[x]=0; x=0 }    /* needs no line: time passed */
#else
       :: primary[s] -> lose_lease(s)
       :: else
       fi;
       s=0
     }
#endif
  od
}
