/* One server's disk of a bucket, which must be able to bring it back alone: what it has acknowledged as a member and what is
 * committed is there, whatever of copies, logs and records is still under way.
 *
 * The server learns the bucket by copies, follows, is dropped, dies and returns with its disk. All other servers are one
 * sequence of epochs with a log each: the log of an epoch begins as what its primary had of the one before, with all that was
 * committed. Messages lie in pools that are never emptied, so those of a primary that was replaced come at any time; copies are
 * counted from 1 by every primary. An entry is an update or a put of the bucket's one record. Unless LOG_ALL (modes Wal and
 * WalSync) only puts are logged, as in mode Delayed, and updates are left out of what is compared.
 * Beside replication.pml, whose servers lose their disk with their memory. Code: services/parameter_server/core/{copying,
 * storing,loading}.cc, replication/replica_secondary.cc. Seeded faults are the #ifdefs, as there. */

#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef SLOTS                   /* log entries */
#define SLOTS 2
#endif
#ifndef ENTRIES                 /* that are ever appended */
#define ENTRIES 3
#endif
#ifndef COPIES                  /* that a primary begins */
#define COPIES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOG_ALL
#define LOG_ALL 0
#endif
#define QUEUE 3                 /* entries that wait for the disk; more are not accepted meanwhile */

/* Entries: numbered from 1 as they are appended. */
byte entries=0;
bool is_put[ENTRIES+1];
byte version[ENTRIES+1];        /* of the record, with this put */
byte follows[ENTRIES+1];        /* the entry before it where it was appended */

/* All others. Of arrays by two indices the first is the epoch. */
byte now_epoch=1;
byte log[(EPOCHS+1)*SLOTS];     /* of the epoch's primary */
byte length[EPOCHS+1];
byte committed[EPOCHS+1];
byte base[EPOCHS+1];            /* what was committed when the epoch began */
byte member[EPOCHS+1];          /* the incarnation of our server that is a member; 0: it is none */
byte begun[EPOCHS+1];           /* copies so far */
byte begun_at[EPOCHS+1];        /* what was committed when the last one began */
byte learner[EPOCHS+1];         /* the incarnation that the last one is for */
byte installed[EPOCHS+1];       /* copy that the server says it has on disk */
bool joint[EPOCHS+1];           /* commits wait for the learner */
byte acked[EPOCHS+1];           /* by the server: of the copy that counts, or as a member */

/* The server's memory. */
byte incarnation=1;
byte epoch=0;
#define NONE 0
#define LEARNER 1
#define MEMBER 2
byte role=NONE;
byte copy=0;
bool receiving=0;
bool has_content=0;
bool knows_ack=0; byte own_acked=0;
byte own_length=0; byte own_committed=0; byte persisted=0;
byte own_log[SLOTS];
byte content[ENTRIES+1];        /* the record: by version, the put */
byte newest=0;                  /* version */

/* What waits for the disk, in the order in which it is done. */
bool unmark=0; bool install=0;
byte persists=0; byte persist_entry[QUEUE]; byte persist_at[QUEUE]; bool persist_void[QUEUE];
byte put_at=0;                  /* the last put that was committed */

/* Its disk. */
bool mark=0;
byte disk_record[ENTRIES+1]; byte disk_newest=0;
byte disk_log[SLOTS];
byte disk_from=0;               /* what the shards of the copy have */
byte logged_until=0;            /* in memory, and begins anew with an erased log */

byte crashes=0;
byte e, i, v, n;                /* scratch, 0 between transitions */

#ifdef JOINT_BEFORE_INSTALLED
#define IS_COPIED (learner[now_epoch]==incarnation && role==LEARNER && epoch==now_epoch && copy==begun[now_epoch])
#else
#define IS_COPIED (learner[now_epoch]==incarnation && installed[now_epoch]==begun[now_epoch])
#endif
#define MUST_PERSIST(entry) (LOG_ALL || is_put[entry])
#define LOG(e,x) log[(e)*SLOTS+(x)-1]

/* ---- The others ---- */

inline append_entry(put) {
  entries++; is_put[entries]=put; length[now_epoch]++; LOG(now_epoch, length[now_epoch])=entries;
  if :: length[now_epoch]>1 -> follows[entries]=LOG(now_epoch, length[now_epoch]-1) :: else fi;
  i=1; do :: i<=length[now_epoch] -> v=v+is_put[LOG(now_epoch, i)]; i++ :: else -> break od;
  version[entries]=(put -> v : 0); i=0; v=0
}

inline begin_epoch(kept, has_member) {
  n=kept; i=1; do :: i<=n -> LOG(now_epoch+1, i)=LOG(now_epoch, i); i++ :: else -> break od; i=0;
  base[now_epoch+1]=committed[now_epoch]; committed[now_epoch+1]=committed[now_epoch]; length[now_epoch+1]=n;
  member[now_epoch+1]=has_member; acked[now_epoch+1]=base[now_epoch+1];
  now_epoch++; n=0
}

/* ---- The server's memory ---- */

inline void_tasks() {
  install=0; put_at=0;
#ifndef TASKS_OF_AN_EARLIER_LIFE
  i=0; do :: i<persists -> persist_void[i]=1; i++ :: else -> break od; i=0;
#endif
}

inline forget() {
  void_tasks();
  role=NONE; copy=0; receiving=0; has_content=0; knows_ack=0; own_acked=0; own_length=0; own_committed=0; persisted=0; newest=0;
  i=0; do :: i<SLOTS -> own_log[i]=0; i++ :: else -> break od;
  i=0; do :: i<=ENTRIES -> content[i]=0; i++ :: else -> break od; i=0
}

/* Says what it has, if it is heard: what it says before its copy is there does not count. */
inline acknowledge() {
  if
#ifdef ACKNOWLEDGED_BEFORE_STORED
  :: knows_ack && own_acked>acked[epoch] -> acked[epoch]=own_acked
#else
  :: knows_ack && own_acked<=persisted && own_acked>acked[epoch] -> acked[epoch]=own_acked
  :: knows_ack && own_acked>persisted && persisted>acked[epoch] -> acked[epoch]=persisted
#endif
  :: else
  fi
}

inline begin_to_learn(e) {
  forget(); epoch=e; role=LEARNER; copy=begun[e]; receiving=1; unmark=1; knows_ack=1;
  own_acked=begun_at[e]; own_length=begun_at[e]; own_committed=begun_at[e]; persisted=begun_at[e];
  acked[e]=begun_at[e]
}

/* The record as it was when the copy began, or as it is now at the primary. */
inline take_copy(upto) {
  n=upto; i=1;
  do
  :: i<=n -> if :: is_put[LOG(epoch, i)] -> newest=version[LOG(epoch, i)]; content[newest]=LOG(epoch, i) :: else fi; i++
  :: else -> break
  od;
  i=0; n=0; receiving=0; install=1
}

/* The next entry of the primary. */
inline accept(entry) {
  n=entry; own_acked++;
  if
  :: own_acked>own_committed && !(own_acked<=own_length && own_log[own_acked-1]==n) ->
     if :: persisted>=own_acked -> persisted=own_acked-1 :: else fi;
     i=own_acked; do :: i<SLOTS -> own_log[i]=0; i++ :: else -> break od; i=0;
     own_log[own_acked-1]=n; own_length=own_acked;
     if
     :: MUST_PERSIST(n) -> persist_entry[persists]=n; persist_at[persists]=own_acked; persist_void[persists]=0; persists++
     :: !MUST_PERSIST(n) && persisted==own_acked-1 -> persisted=own_acked
     :: else
     fi
  :: else
  fi;
  n=0; acknowledge()
}

inline commit_next() {
  own_committed++; n=own_log[own_committed-1];
  if
  :: n>0 && is_put[n] -> content[version[n]]=n; newest=(version[n]>newest -> version[n] : newest); put_at=own_committed
  :: else
  fi;
  n=0
}

/* ---- The disk ---- */

inline erase_log_from(index) { i=index; do :: i<SLOTS -> disk_log[i]=0; i++ :: else -> break od; i=0 }

inline do_unmark() {
  unmark=0; mark=0; disk_newest=0;
  i=0; do :: i<=ENTRIES -> disk_record[i]=0; i++ :: else -> break od; i=0;
#ifndef COPY_KEEPS_THE_LOG
  erase_log_from(0); logged_until=0
#endif
}

inline write_record() {
  disk_newest=newest;
  i=0; do :: i<=ENTRIES -> disk_record[i]=content[i]; i++ :: else -> break od; i=0
}

inline do_install() {
  install=0; write_record(); mark=1; has_content=1; installed[epoch]=copy; disk_from=begun_at[epoch]
}

inline do_persist() {
  if
  :: !persist_void[0] ->
     n=persist_at[0];
#ifndef LOG_KEEPS_WHAT_IS_OVERWRITTEN
     if :: n<=logged_until -> erase_log_from(n-1) :: else fi;
#endif
     logged_until=n; disk_log[n-1]=persist_entry[0];
     if
     :: own_log[n-1]==persist_entry[0] && persisted==n-1 ->
        persisted=n;
        do
        :: persisted<own_length && own_log[persisted]>0 && !MUST_PERSIST(own_log[persisted]) -> persisted++
        :: else -> break
        od
     :: else
     fi;
     n=0
  :: else
  fi;
  i=1;
  do
  :: i<persists -> persist_entry[i-1]=persist_entry[i]; persist_at[i-1]=persist_at[i]; persist_void[i-1]=persist_void[i]; i++
  :: else -> break
  od;
  i=0; persists--; persist_entry[persists]=0; persist_at[persists]=0; persist_void[persists]=0;
  acknowledge()
}

/* Where only puts are logged, the log is done with once the record is written. */
inline do_put() {
  write_record();
  if
  :: !LOG_ALL -> i=0; do :: i<put_at -> disk_log[i]=0; i++ :: else -> break od; i=0
  :: else
  fi;
  put_at=0
}

inline crash() {
  crashes++; forget(); epoch=0; incarnation++; unmark=0;
  i=0; do :: i<persists -> persist_entry[i]=0; persist_at[i]=0; persist_void[i]=0; i++ :: else -> break od; i=0;
  persists=0; logged_until=0   /* the log is erased with the next copy */
}

/* All others are lost, and so is what this server has not on disk. Of the version that was committed last the same put must come
 * back, from the record or the log; where all is logged, each entry that is committed and not in the copy, and none on top of
 * another than the one that it was appended to. */
inline bring_back() {
  assert(mark);
  n=disk_newest;
  i=0;
  do
  :: i<SLOTS ->
     v=disk_log[i];
     assert(!(LOG_ALL && i>0 && v>0 && disk_log[(i>0 -> i-1 : 0)]>0) || follows[v]==disk_log[(i>0 -> i-1 : 0)]);
     if
#ifdef FIRST_OF_A_VERSION_COUNTS
     :: v>0 && is_put[v] && version[v]>n -> n=version[v]; disk_record[n]=v
#else
     :: v>0 && is_put[v] && version[v]>=n -> n=version[v]; disk_record[n]=v
#endif
     :: else
     fi;
     i++
  :: else -> break
  od;
  i=1;
  do
  :: i<=committed[now_epoch] ->
     v=LOG(now_epoch, i);
     assert(!is_put[v] || (n>=version[v] && disk_record[version[v]]==v));
     assert(!LOG_ALL || i<=disk_from || disk_log[i-1]==v);
     i++
  :: else -> break
  od;
  i=0; v=0; n=0
}

#define choose_epoch() e=now_epoch; do :: e>1 -> e-- :: break od

active proctype server() {
  do
  /* ---- The others ---- */
  :: atomic { entries<ENTRIES && length[now_epoch]<SLOTS -> append_entry(0) }
  :: atomic { entries<ENTRIES && length[now_epoch]<SLOTS -> append_entry(1) }
  :: atomic { committed[now_epoch]<length[now_epoch] &&
       ((member[now_epoch]==0 && !joint[now_epoch]) || acked[now_epoch]>committed[now_epoch]) -> committed[now_epoch]++ }
  :: atomic { now_epoch<EPOCHS -> begin_epoch(length[now_epoch], member[now_epoch]) }
  :: atomic { now_epoch<EPOCHS && member[now_epoch]!=0 -> begin_epoch(length[now_epoch], 0) }
  :: atomic { now_epoch<EPOCHS && committed[now_epoch]<length[now_epoch] -> begin_epoch(committed[now_epoch], member[now_epoch]) }
  :: atomic { member[now_epoch]==0 && begun[now_epoch]<COPIES && !joint[now_epoch] ->
       begun[now_epoch]++; begun_at[now_epoch]=committed[now_epoch]; learner[now_epoch]=incarnation }
  :: atomic { !joint[now_epoch] && begun[now_epoch]>0 && IS_COPIED -> joint[now_epoch]=1 }
  :: atomic { joint[now_epoch] -> joint[now_epoch]=0; learner[now_epoch]=0 }   /* given up */
  :: atomic { now_epoch<EPOCHS && joint[now_epoch] && acked[now_epoch]>=committed[now_epoch] &&
       acked[now_epoch]>=base[now_epoch] ->
       begin_epoch(length[now_epoch], learner[now_epoch]) }

  /* ---- What reaches the server ---- */
  :: atomic { choose_epoch();
       if
       :: begun[e]>0 && learner[e]==incarnation && e>=epoch &&
          !(e==epoch && (role==MEMBER || (role==LEARNER && begun[e]<=copy))) ->
          begin_to_learn(e)
#ifdef LATE_COPY_BEGIN
       :: begun[e]>0 && learner[e]==incarnation && e<epoch && role==LEARNER && begun[e]==copy && !receiving ->
          receiving=1; unmark=1
#endif
       :: e>epoch && role!=NONE && member[e]==incarnation && has_content -> role=MEMBER; epoch=e; knows_ack=0
       :: e>epoch && role!=NONE && member[e]!=incarnation -> forget(); epoch=e
       :: else
       fi;
       e=0 }
  :: atomic { receiving && begun[epoch]==copy -> take_copy(begun_at[epoch]) }
  :: atomic { receiving && begun[epoch]==copy && committed[epoch]>begun_at[epoch] -> take_copy(committed[epoch]) }
  :: atomic { role==MEMBER && !knows_ack ->
       if
       :: base[epoch]<=own_length ->
          knows_ack=1; own_acked=(base[epoch]>own_committed -> base[epoch] : own_committed); acknowledge()
       :: else -> n=epoch; forget(); epoch=n; n=0
       fi }
  :: atomic { knows_ack && own_acked<length[epoch] && persists<QUEUE -> accept(LOG(epoch, own_acked+1)) }
  :: atomic { knows_ack && has_content && own_committed<committed[epoch] && own_committed<own_acked && own_committed<persisted ->
       commit_next() }

  /* ---- Its disk ---- */
  :: atomic { unmark -> do_unmark() }
  :: atomic { !unmark && install -> do_install() }
  :: atomic { !unmark && !install && persists>0 -> do_persist() }
  :: atomic { !unmark && !install && persists==0 && put_at>0 -> do_put() }
  :: atomic { crashes<CRASHES -> crash() }
  :: atomic { member[now_epoch]!=0 -> bring_back(); break }
  od
}
