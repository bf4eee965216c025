/* What transitions of the model ask before they happen. Each #ifdef is a seeded fault: it leaves out one rule. */

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
#define CAUGHT_UP(p,r) (HAS_ACKED(p,r,committed[p]) && HAS_ACKED(p,r,reconciled[p]))
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
#define STAYS_IN_SYNC(set,departing) true
#else
#define STAYS_IN_SYNC(set,departing) (SIZE(set)>=MIN_IN_SYNC || dead[departing])
#endif

#ifdef MOVED_ON_SUSPICION
#define MAY_RECOVER (ALL_GONE || SIZE(record_members)==1)
#else
#define MAY_RECOVER ALL_GONE
#endif

/* ---- Following a trace: each step must be the next line; what it chooses is in the line ---- */

#ifdef TRACE                        /* `replay` writes the trace, as C arrays, in front of this */
#define TRACING 1
short line=0;
#define STEP(name) c_expr { (now.line<TRACE_LENGTH && trace_step[now.line]==step_##name) }
#define NUMBER_IS(n) (c_expr { trace_number[now.line] } == (n))
#define choose_server()   c_code { now.s=trace_server[now.line]; }
#define choose_other()    c_code { now.x=trace_argument[now.line]; }
#define choose_update()   c_code { now.u=trace_argument[now.line]; }
#define choose_prepare(r) c_code { now.e=trace_argument[now.line]; now.x=trace_number[now.line]; }
#define choose_record(r)  c_code { now.e=trace_number[now.line]; }
#define refuse() false
#else
#define TRACING 0
#define STEP(name) true
#define NUMBER_IS(n) true
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
