/* Bounds and state of the model; see replication.pml. */

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
#if EPOCHS > 7
#define epoch_set int
#else
#define epoch_set byte
#endif
epoch_set proved_dead=0;                 /* epochs, as a set, whose primary is proved dead */
epoch_set handed_over=0;                 /* epochs, as a set, whose primary has released them */

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
