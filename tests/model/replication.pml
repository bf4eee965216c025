/* The replication protocol of one bucket: three servers, a controller with one record, workers that retry U updates.
 *
 * `bucket`, below, lists the transitions and when they are possible; what they do is in transitions.pml, the conditions in
 * conditions.pml, the state and its bounds in state.pml.
 * Checked: I5 (acknowledged updates are in every later primary), I6 (applied once), I7 (committed logs agree), I11 (a read
 * under a lease shows what was acknowledged before it), and that losing an acknowledged update takes MIN_IN_SYNC crashes.
 *
 * Messages lie in pools that are never emptied, which covers loss, delay, reordering and duplication; a pause is a server
 * that is not scheduled. A crash loses the memory; the server returns as a fresh incarnation. A compare-and-swap takes effect
 * at once and its reply comes late. An update is a number, a log entry one update, a snapshot the prepares it replaces.
 * Seeded faults are the #ifdefs: each leaves out one rule, and `check` demands that SPIN notices.
 * With TRACE the model follows a trace of the implementation (see `replay`). */

#include "state.pml"
#include "conditions.pml"
#include "transitions.pml"

inline create_bucket() {
  primary_of[1]=0; members_of[1]=MEMBERS;
  do
  :: s<SERVERS ->
     if
     :: MEMBERS & BIT(s) -> epoch[s]=1; members[s]=MEMBERS; promised[s]=(s!=0 && !TRACING); lease[s]=promised[s]
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
       :: STEP(commit) && primary[s] && committed[s]<length[s] && NUMBER_IS(committed[s]+1) &&
            SIZE(members[s])>=MIN_IN_SYNC && ALL_ACKED(s, committed[s]+1) -> commit_entry(s)
       :: STEP(hear) && !primary[s] && !fresh[s] && committed[s]<announced[epoch[s]] && NUMBER_IS(committed[s]+1) &&
            ACKED_OR_BASE(s, epoch[s])>committed[s] -> hear_commit(s)
#ifndef NO_READ_CHECK
       :: STEP(read) && primary[s] && MAY_READ(s) -> serve_read(s)
#endif

       :: STEP(promise) && primary[s] -> answer_beacon(s)
       :: STEP(expire) && promised[s] && PROMISE_RAN_OUT(s) -> promised[s]=0
       :: STEP(freed) && promised[s] && PROMISE_RELEASED(s) -> promised[s]=0
       :: STEP(proof) && PROOF && PRIMARY_PROVED_DEAD && (proved_dead&BIT(record_epoch))==0 && (!TRACING || s==record_primary) -> release_of_the_dead()
       :: STEP(hand_over) && HAND_OVER && primary[s] && IDLE(s) && committed[s]==length[s] && members[s]!=BIT(s) &&
            !HANDED_OVER(s) -> hand_over_bucket(s)

       :: STEP(take_over) && NUMBER_IS(record_epoch+1) && IS_SECONDARY(s) && learner_of[s]==0 && !promised[s] && MAY_SWAP(s) -> propose_promotion(s)
       :: STEP(drop) && NUMBER_IS(record_epoch+1) && primary[s] && IDLE(s) && MAY_SWAP(s) -> propose_drop(s)
       :: STEP(copy) && primary[s] && IDLE(s) && MAY_SWAP(s) && members[s]!=7 -> start_learner(s)
       :: (STEP(abandon) || STEP(turn_joint)) && primary[s] && proposed[s]==0 && copying[s]!=0 -> end_copying(s)
       :: (STEP(abandon) || STEP(add)) && primary[s] && proposed[s]==0 && joint[s]!=0 -> end_joint(s)
       :: STEP(recover) && NUMBER_IS(record_epoch+1) && RECOVERY && proposed[s]==0 && record_epoch<EPOCHS && MAY_RECOVER -> recover_bucket(s)
       :: STEP(outcome) && NUMBER_IS(proposed[s]) && proposed[s]>0 -> hear_outcome(s)
       :: STEP(learn) && proposed[s]==0 && epoch[s]<record_epoch -> learn_record(s)
       :: STEP(step_down) && proposed[s]==0 && primary[s] && epoch[s]<record_epoch && !RECORD_NAMES(s) -> leave(s)

       :: STEP(crash) && crashes<CRASHES && (!dead[s] || learner_of[s]>0 || TRACING) && (RECOVERY || STAYS_AFTER(s)) -> lose_memory(s)
#ifdef TRACE
       fi;
       s=0; line++; c_code { printf("matched %d\n", now.line); }
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
