import { z } from 'zod'
import { CAUSES } from '../causes.ts'
import { UNITS } from '../config/units.ts'
import { SEVERITIES } from '../doctor/finding.ts'
import { EVENT_TYPES } from '../events/kinds.ts'
import { NOTICE_KINDS } from '../events/notices.ts'
import { ACTOR, COUNT, NUMBER, RELEASE_NAME, TIME } from './fields.ts'

/**
 * What the API shows as the cluster itself has it: those who make it say the types by these schemas, and load none of
 * them.
 */

const DIGEST = z.string().describe('sha256:…')

export type ShownRelease = z.infer<typeof RELEASE>
/** A release, as the status shows it. */
export const RELEASE = z.strictObject({ id: RELEASE_NAME,
  entry: z.string().describe('the absolute path of the main file'), path: z.string().describe('the folder of the code'),
  createdAt: TIME, mode: z.enum(['live', 'symlink', 'path', 'folder']).describe('how the code is pinned').optional(),
  cwd: z.string().optional(),
  calledAs: z.string().describe('the entry as its workers see it, if it is a symbolic link').optional(),
  source: z.string().nullable().describe('the folder that was copied, or the repository of its commit').optional(),
  build: z.string().nullable().describe(
    'of a release of a commit: what has built it, "hooks.build" or the commands; null: nothing'
  ).optional(),
  package: z.strictObject({ name: z.string().nullable(), version: z.string().nullable() }).nullable().optional(),
  git: z.strictObject({ commit: z.string(), branch: z.string().nullable(), isDirty: z.boolean().nullable(),
    author: z.string().nullable().optional(),
    subject: z.string().nullable().describe('the first line of the message').optional() }).nullable().optional(),
  lockFile: DIGEST.nullable().optional(),
  runtime: z.enum(['node', 'other']).optional().describe('what runs the entry; other: it is a program itself'),
  node: z.strictObject({ file: z.string().describe('its absolute path'), version: z.string(),
    by: z.enum(['option', '.nvmrc', '.node-version', 'volta', 'command', 'clusterdeck']).describe(
      'what has asked for it; command: it is the one with which the command was typed; clusterdeck: it is that of clusterdeck'
    ), instead: z.string().optional().describe('why it is not the one that a file of the app asks for') }).optional()
    .describe('the Node of its workers, hooks, builds and jobs'),
  environment: z.strictObject({ digest: DIGEST, names: z.array(z.string()) }).describe(
    'names of the variables that the configuration sets, without their values'
  ).optional(), arguments: z.strictObject({ digest: DIGEST }).optional(),
  changed: z.strictObject({ from: RELEASE_NAME, environment: z.array(z.string()).describe('names of variables'),
    arguments: z.boolean(), package: z.boolean(), commit: z.boolean(), lockFile: z.boolean(),
    node: z.boolean().optional(), mode: z.boolean(), folder: z.boolean(), entry: z.boolean() }).nullable().describe(
      'the differences from the release before'
    ).optional(), createdBy: ACTOR.optional(), note: z.string().nullable().optional(),
  environmentChanged: z.boolean().describe('its workers get other variables than at its deploy').optional() }).meta({
    id: 'Release'
  })

export type Setback = z.infer<typeof SETBACK>
export const SETBACK = z.strictObject({
  outcome: z.enum(['rolled-back', 'failed']).describe(
    'rolled-back: a rollback replaced it; failed: a later rollout to it did not succeed'
  ),
  at: TIME,
  rollout: NUMBER,
  actor: ACTOR,
  reason: z.string().nullable()
})

export type KeptRelease = z.infer<typeof KEPT_RELEASE>
export const KEPT_RELEASE = RELEASE.extend({
  outcome: z.enum(['succeeded', 'failed', 'rolled-back']).nullable().describe(
    'the outcome of its last successful deploy, or of its last deploy; null: it is still running'
  ),
  rollout: NUMBER.nullable().describe('the rollout that deployed it'),
  deployedAt: TIME.nullable(),
  servedAt: TIME.nullable().describe('when it last became the running release; null: never'),
  setback: SETBACK.nullable().describe('what went wrong with it after it served; null: nothing'),
  isLastGood: z.boolean().describe('the release that a rollback goes to by default'),
  inUse: z.boolean().describe('a worker runs it, or would restart with it'),
  changedInPlace: z.strictObject({
    kind: z.enum(['code', 'folder', 'unknown']).describe(
      'code: a new worker would run other code; folder: other files of its folder have changed, by a later deploy or by the app; unknown: whether they have is not known'
    ),
    count: z.int().describe('how many files have changed'),
    files: z.array(z.string()).describe('at most 5 of them'),
    since: TIME.nullable().describe('when the first of them was written; null: unknown'),
    by: RELEASE_NAME.nullable().describe(
      'the release that was deployed from the same folder later, if only that is known'
    ),
    message: z.string().describe('the same for people')
  }).nullable().describe(
    'its folder has other files now: a new worker would run other code, and a rollback to it is refused; null: as far as is known it has not'
  )
}).meta({ id: 'KeptRelease' })

export type Figures = z.infer<typeof FIGURES>
export const FIGURES = z.strictObject({ workers: COUNT, requests: COUNT, errorRate: z.number().nullable(),
  p50Ms: z.number().nullable().optional(), p99Ms: z.number().nullable() })

export type Decided = z.infer<typeof DECIDED>
const DECIDED = z.strictObject({ figure: z.string().describe('5xx, CPU, memory, or a quantile of latency such as p99'),
  unit: z.enum(['share', 'ms', 'percent', 'bytes']), canary: z.number(), baseline: z.number(),
  limit: z.number().describe('what the canary exceeds'),
  option: z.enum(['errorRate', 'p99Ratio', 'slowerMs']).describe('of `rollout.limits`') })

export type Verdict = z.infer<typeof VERDICT>
export const VERDICT = z.strictObject({ at: TIME,
  passed: z.boolean().nullable().describe('null: too little traffic or time to judge'), isFinal: z.boolean(),
  message: z.string(), canary: FIGURES.describe('figures of the new workers'),
  baseline: FIGURES.describe('figures of the old workers'),
  decided: DECIDED.optional().describe('of one that has not passed: the figure that decided') })

export type RolloutStep = z.infer<typeof STEP>
export const STEP = z.strictObject({ slot: NUMBER,
  state: z.enum(['pending', 'stopping', 'starting', 'soaking', 'ready', 'draining', 'done', 'failed', 'reverting',
    'reverted']), oldWorker: NUMBER.nullable(), newWorker: NUMBER.nullable(),
  from: RELEASE_NAME.describe('the release that this slot rolls back to'), isCanary: z.boolean(),
  startedAt: TIME.nullable(), readyAt: TIME.nullable().describe('when its new worker was ready').optional(),
  promotedAt: TIME.nullable().describe('when its new worker took the slot and the old one began to drain').optional(),
  drainedAt: TIME.nullable().describe(
    'when the old worker was gone, or was kept for nothing but its long-lived connections'
  ).optional(), revertingAt: TIME.nullable().describe('when the slot began to roll back').optional(),
  finishedAt: TIME.nullable() })

export type Moment = z.infer<typeof MOMENT>
export const MOMENT = z.strictObject({ at: TIME, type: z.string().describe('the type of the event'),
  actor: ACTOR.nullable().describe('who did it; null: nobody'),
  message: z.string().nullable().describe('at most 500 characters'),
  passed: z.boolean().nullable().describe(
    'the result of a verdict; null: no verdict, or too little traffic or time to judge'
  ) }).meta({
    examples: [{ at: '2026-01-31T12:00:09.000Z', type: 'rollout.paused', actor: 'ada', message: 'paused by ada',
      passed: null }]
  })

export type RolloutHook = z.infer<typeof HOOK>
export const HOOK = z.strictObject({ name: z.enum(['beforeDeploy']),
  state: z.enum(['due', 'running', 'passed', 'failed', 'ended']).describe(
    'due: it starts after the pause; ended: the deploy was aborted meanwhile'
  ), startedAt: TIME.nullable(), finishedAt: TIME.nullable(),
  output: z.string().nullable().describe('the end of its output, if it failed') })

export type Comparison = z.infer<typeof COMPARISON>
export const COMPARISON = z.strictObject({ at: TIME, canary: FIGURES, baseline: FIGURES })

export const JOB_NAME = z.string().meta({ examples: ['nightly'] })

export type Run = z.infer<typeof RUN>
export const RUN = z.strictObject({ id: NUMBER.describe('that of the event with which it began'),
  job: JOB_NAME.nullable().describe('null: a command that somebody has typed'),
  command: z.string().nullable().describe('what was typed; null: the command of the job, which is never shown'),
  state: z.enum(['running', 'succeeded', 'failed', 'interrupted']),
  cause: z.string().nullable().describe(
    'timed-out; of an interrupted one operator, replaced, stopping, upgrade or master-lost; of a deploy of a commit that has failed, the code of its error; else null'
  ), actor: ACTOR.describe('who started it; cron: its time had come'),
  release: RELEASE_NAME.nullable().describe('in which it runs; of a deploy of a commit, the one that it has made'),
  rollout: NUMBER.nullable().describe('of a deploy of a commit: the rollout that it has started'),
  pid: NUMBER.nullable().describe('null: it could not be started'),
  dueAt: TIME.nullable().describe('when it was to start; null: somebody has started it'), startedAt: TIME,
  finishedAt: TIME.nullable(), durationMs: COUNT.nullable().describe('null: it runs, or nobody knows how long it ran'),
  code: z.int().nullable(), signal: z.string().nullable(),
  reason: z.string().nullable().describe('why it did not succeed'),
  acknowledgedBy: ACTOR.nullable().describe('who has acknowledged that it did not succeed'),
  hasTerminal: z.boolean().describe(
    'whether it runs in a terminal of whoever started it, so that its output is not kept'
  ), git: z.string().nullable().describe('of a deploy of a commit: the branch, tag or commit that was asked for'),
  stage: z.strictObject({ name: z.string(), startedAt: TIME }).nullable().describe(
    'of a deploy of a commit: what it does, or did last'
  ) }).meta({ id: 'JobRun' })

export type Notice = z.infer<typeof NOTICE>
export const NOTICE = z.strictObject({ id: NUMBER.describe('the id of its newest event'), kind: z.enum(NOTICE_KINDS),
  at: TIME, firstAt: TIME.describe('when the first unacknowledged one of its kind happened'), count: COUNT,
  message: z.string().meta({ description: 'one sentence for people',
    examples: ['Deploy of r5 was rolled back: worker 9 (slot 1) was not ready within 30 s'] }),
  endedAt: TIME.nullable().describe('when the problem ended by itself; null: it has not') }).meta({ id: 'Notice' })

export type Holds = z.infer<typeof HOLDS>
/** What a draining worker still has. */
export const HOLDS = z.strictObject({
  requests: COUNT.describe('requests that are not answered yet, without the transfers'),
  transfers: COUNT.describe('requests whose bytes move, up or down'),
  webSockets: COUNT,
  eventStreams: COUNT,
  connections: COUNT.describe('other long-lived connections, such as those of a TCP server'),
  sessions: COUNT.describe('sessions of sticky.by that are in its memory: their requests go on to reach it')
})

export type Finished = z.infer<typeof FINISHED>
/** How the program of a slot came to its end that is not started again by itself. */
export const FINISHED = z.strictObject({ at: TIME, worker: NUMBER, release: RELEASE_NAME, cause: z.string(),
  code: z.int().nullable(), succeeded: z.boolean().describe('its exit code was 0') })

export type Reason = z.infer<typeof REASON>
export const REASON = z.strictObject({ slots: z.array(NUMBER),
  text: z.string().meta({ description: 'text of the app: escape it',
    examples: ['TypeError: price is not a function, in total (price.js)'] }),
  event: NUMBER.nullable().describe('the newest of these exits, in the history; null: not looked up'),
  crashGroup: NUMBER.nullable(),
  isNewInRelease: z.boolean().describe('whether no release before the one that runs has crashed so') })

export type HistoryState = z.infer<typeof HISTORY_STATE>
/** Whether the history is written, and what it lacks until it is. */
export const HISTORY_STATE = z.strictObject({
  problem: z.string().nullable().describe('why the history cannot be written now; null: it can'),
  since: TIME.nullable().describe('the first event that it lacks'),
  waiting: COUNT.describe('events that are kept in memory and written once it can be'),
  lost: COUNT.describe('events that were too many to be kept')
})

export const DIAGNOSTICS_KIND = z.enum(['cpu-profile', 'heap-snapshot', 'heap-statistics', 'report'])

export type Diagnostic = z.infer<typeof DIAGNOSTICS>
export const DIAGNOSTICS = z.strictObject({ id: NUMBER, kind: DIAGNOSTICS_KIND, worker: NUMBER, slot: NUMBER,
  pid: NUMBER, release: RELEASE_NAME, state: z.enum(['running', 'done', 'failed']),
  durationMs: COUNT.nullable().describe('the length of a CPU profile'), actor: ACTOR, startedAt: TIME,
  finishedAt: TIME.nullable(), bytes: COUNT.nullable().describe('the size of its file'), error: z.string().nullable(),
  warning: z.string().nullable().describe('what secrets its file may hold') }).meta({ id: 'Diagnostics' })

export type Mend = z.infer<typeof MEND>
export const MEND = z.strictObject({
  how: z.enum(['command', 'option', 'flags', 'code']).describe(
    '`command`: for a shell; `option`: for the config file; `flags`: for the command that starts the app; `code`: what to change, in words'
  ),
  text: z.string().meta({ description: 'one line',
    examples: ['releases: { mode: \'folder\', shared: [\'.env\', \'uploads/\'] }'] }),
  where: z.string().nullable().describe(
    'the folder of a command, the config file, or the command that takes the flags'
  ),
  sets: z.strictObject({ name: z.string(), value: z.json() }).optional().describe(
    'the option that it sets, where that counts at once: `PATCH /api/v1/config` sets it as well'
  )
}).meta({ id: 'Mend' })

export type Finding = z.infer<typeof CHECK>
export const CHECK = z.strictObject({
  id: z.string().meta({ description: 'of the check; it stays the same', examples: ['in-place'] }),
  severity: z.enum(SEVERITIES).describe('`unknown`: it cannot be known on this machine, or not yet'),
  title: z.string(),
  why: z.string().describe('why it matters, in one sentence; may be empty'),
  mend: z.array(MEND).describe('the lines that mend it, in this order')
}).meta({ id: 'Check' })

export type Report = z.infer<typeof REPORT>
export const REPORT = z.strictObject({ checkedAt: TIME, isRunning: z.boolean().describe('whether the app was running'),
  problems: COUNT.describe('how many checks are errors or warnings'),
  items: z.array(CHECK).describe('the worst first') }).meta({ id: 'Checks' })

const CRASH_KIND = z.enum(['exception', 'unhandled-rejection', 'panic', 'exit-code', 'signal', 'heap-out-of-memory',
  'kernel-out-of-memory', 'hung', 'boot-failure', 'not-started'])

export type CrashGroup = z.infer<typeof CRASH_GROUP>
/** A crash group: crashes of the same fault. */
export const CRASH_GROUP = z.strictObject({ id: NUMBER, fingerprint: z.string(),
  state: z.enum(['open', 'resolved', 'muted']), kind: CRASH_KIND,
  cause: z.enum(CAUSES).describe('the cause of its newest crash, as in the history'), errorName: z.string().nullable(),
  message: z.string().nullable().describe('the message of its newest crash'),
  culprit: z.string().nullable().describe(
    'the topmost function of the app with its file; only the file if the function has no name'
  ), firstSeenAt: TIME, lastSeenAt: TIME,
  count: COUNT.describe('how many crashes, including those that are no longer kept'),
  firstRelease: RELEASE_NAME.nullable(), lastRelease: RELEASE_NAME.nullable(),
  lastCrash: COUNT.describe('the id of its newest crash'), stateChangedAt: TIME.nullable(),
  stateChangedBy: ACTOR.nullable(),
  goneSince: RELEASE_NAME.nullable().describe('the first release without this crash; null: not known yet'),
  returnedAt: TIME.nullable().describe('when it crashed again after it was resolved'),
  isNewInRelease: z.boolean().describe('the running release is the first with this crash'), hasReturned: z.boolean() })
  .meta({ id: 'CrashGroup' })

export const OCCURRENCE = z.strictObject({ id: NUMBER, at: TIME, cause: z.enum(CAUSES), code: z.int().nullable(),
  signal: z.string().nullable(), slot: NUMBER.nullable(), worker: NUMBER.nullable(), pid: NUMBER.nullable(),
  release: RELEASE_NAME.nullable(), rollout: NUMBER.nullable(), uptimeMs: z.number().nullable(),
  errorName: z.string().nullable(), errorMessage: z.string().nullable() }).meta({ id: 'CrashOccurrence' })

export type Frame = z.infer<typeof FRAME>
export const FRAME = z.strictObject({ function: z.string().nullable(),
  file: z.string().nullable().describe('an absolute path, relative to the release if it is below it, or `node:…`'),
  line: z.int().nullable(), column: z.int().nullable(),
  isInApp: z.boolean().describe('a frame of the app: not of its language, its packages or clusterdeck') })

export type Crash = z.infer<typeof CRASH_RECORD>
export const CRASH_RECORD = OCCURRENCE.extend({ kind: CRASH_KIND,
  nodeVersion: z.string().nullable().describe('null: it was no Node.js program'),
  stack: z.string().nullable().describe('the stack as the process reported it'), frames: z.array(FRAME),
  causes: z.array(
    z.strictObject({ depth: COUNT, errorName: z.string(), errorMessage: z.string(), stack: z.string().nullable() })
  ),
  requests: z.array(
    z.strictObject({ method: z.string(), path: z.string(), ageMs: z.number(),
      isHanging: z.boolean().optional().describe('the worker hung while it answered this one') })
  ).describe('requests that were not answered yet'),
  memory: z.record(z.string(), z.number()).nullable().describe('memory at its end, in bytes'),
  stderr: z.array(z.string()).describe('its last lines on stderr') })

export type Event = z.infer<typeof EVENT>
/** One event of the history. */
export const EVENT = z.strictObject({ id: NUMBER.describe('ascending, never used again in this data folder'), at: TIME,
  type: z.enum(EVENT_TYPES), cause: z.enum(CAUSES).nullable(), slot: NUMBER.nullable(), worker: NUMBER.nullable(),
  pid: NUMBER.nullable(), release: RELEASE_NAME.nullable(), rollout: NUMBER.nullable(), actor: ACTOR.nullable(),
  code: z.int().nullable(), signal: z.string().nullable(), uptimeMs: COUNT.nullable(),
  message: z.string().nullable().describe('one sentence for people'),
  detail: z.record(z.string(), z.unknown()).nullable() }).meta({ id: 'Event' })

export const ROLLOUT_STATE = z.enum(['preparing', 'canary', 'rolling', 'paused', 'held', 'rolling-back', 'succeeded',
  'rolled-back', 'failed'])

export type Limits = z.infer<typeof LIMITS>
const LIMITS = z.strictObject({ crashes: COUNT.describe('how many of its workers may crash'),
  errorRate: z.number().describe('by how much its share of 5xx answers may exceed that of the old workers, 0…1'),
  p99Ratio: z.number().describe('how many times the old workers\' latency its own may be'),
  slowerMs: COUNT.describe('by how many ms it has to be slower as well'),
  warmupMs: COUNT.describe('how long the latency of a worker does not count'),
  minRequests: COUNT.describe('fewer than this are no ground for a judgement'),
  readyTimeoutMs: COUNT.describe('in place of ready.timeoutMs').optional() })

export type Strategy = z.infer<typeof STRATEGY>
/** How a rollout replaces workers. */
export const STRATEGY = z.strictObject({
  order: z.enum(['start-first', 'stop-first']).describe(
    'whether the new worker of a slot starts beside the old one, or after its end'
  ),
  surge: NUMBER.describe('how many slots are replaced at a time'),
  minReadyMs: COUNT.describe('how long a new worker has to be ready before the old one drains'),
  canary: z.strictObject({ workers: COUNT, durationMs: COUNT }).nullable().describe(
    'this many new workers serve beside all old ones for this time, and are judged'
  ),
  limits: LIMITS.describe('beyond which a release is not to be trusted'),
  progressDeadlineMs: COUNT.describe('a rollout that comes no further for this long fails; paused time does not count'),
  onFailure: z.enum(['rollback', 'hold']).describe('hold: it stops where it is and waits for an operator'),
  guardMs: COUNT.describe('how long a release that was deployed is watched').optional()
})

const COMMITS = z.strictObject({
  items: z.array(z.strictObject({ commit: z.string(), at: TIME, author: z.string(), subject: z.string() })).describe(
    'newest first'
  ),
  hasMore: z.boolean()
})

export type Preview = z.infer<typeof PREVIEW>
/** What a rollout would do. */
export const PREVIEW = z.strictObject({ kind: z.enum(['deploy', 'rollback']),
  from: RELEASE_NAME.describe('the release that runs'),
  release: z.strictObject({
    ...RELEASE.pick({ mode: true, entry: true, path: true, cwd: true, source: true, package: true, git: true }).shape,
    id: RELEASE_NAME,
    isNew: z.boolean().describe('false: the release is known already'),
    arguments: COUNT.describe('how many; they may hold secrets'),
    nodeOptions: COUNT.describe('how many; they may hold secrets'),
    hooks: z.array(z.enum(['beforeDeploy', 'afterDeploy'])).describe('commands that run with it')
  }).nullable().describe('what would run; null: a refusal says why that is not known'),
  build: z.strictObject({ text: z.string().describe('the commands, for people'),
    isGuess: z.boolean().describe('true: hooks.build is not set'),
    packages: z.enum(['kept', 'installed']).nullable().describe(
      'kept: those of the same lock file are linked; null: the command decides, or it is not known'
    ) }).nullable().describe('how a commit would be built; null: there is nothing to do, or it is not known'),
  changed: RELEASE.shape.changed.unwrap(),
  commits: z.strictObject({ added: COMMITS, removed: COMMITS }).nullable().describe(
    'between both releases, at most 20 each; null: none, or unknown'
  ),
  files: z.strictObject({ added: COUNT, changed: COUNT, removed: COUNT,
    items: z.array(z.strictObject({ name: z.string(), change: z.enum(['added', 'changed', 'removed']) })).describe(
      'at most 20'
    ) }).nullable().describe(
      'the files of its folder that differ from those of the release that runs, without packages; of a commit, those of its repository; null: not known'
    ),
  options: z.array(
    z.strictObject({ name: z.string(), from: z.unknown().describe('null: nothing was set, or the value is secret'),
      to: z.unknown(),
      takesEffect: z.enum(['now', 'deploy', 'start']).describe(
        'deploy: with this one; now: once it is set by PATCH /config, else at the next start; start: at the next start'
      ) })
  ).describe('options whose configuration has changed since it was read'),
  plan: z.strictObject({ workers: COUNT, text: z.string(), strategy: STRATEGY,
    extraWorkers: COUNT.describe('how many at most run beside those that are replaced'),
    extraBytes: COUNT.nullable().describe(
      'the memory that these take, each as much as the largest worker now; null: not known'
    ) }).describe('how it replaces the workers; `text` says it in a sentence'),
  last: z.array(
    z.strictObject({ rollout: NUMBER, state: ROLLOUT_STATE, release: RELEASE_NAME.nullable(), startedAt: TIME,
      tookMs: COUNT })
  ).describe('the last three of its kind and size, newest first'), warnings: z.array(z.string()),
  refusals: z.array(z.strictObject({ code: z.string(), message: z.string() })).describe(
    'all reasons for which it would be refused; none: it would begin'
  ) }).meta({ id: 'Preview' })

const VALUE = z.unknown().describe('null: nothing is set, or the value is secret')
const FROM = z.string().nullable().describe('the file, the variable or the flag')
const SOURCES = ['default', 'file', 'environment', 'flag', 'program'] as const

export type Setting = z.infer<typeof SETTING>
/** An option with its value. */
export const SETTING = z.strictObject({
  name: z.string().meta({ description: 'its path in a config file', examples: ['drain.deadlineMs'] }),
  value: VALUE,
  source: z.enum([...SOURCES, 'operator']).describe(
    'where the value comes from; `operator`: it was changed after the start'
  ),
  from: FROM,
  configured: z.strictObject({ value: VALUE, source: z.enum(SOURCES), from: FROM }).nullable().describe(
    'what it was at the start, if it was changed since; null: it was not'
  ),
  default: z.unknown(),
  description: z.string(),
  expected: z.string(),
  unit: z.enum(UNITS).nullable().describe('of a number; `share`: of 1, `times`: of another figure'),
  takesEffect: z.enum(['now', 'deploy', 'start']).describe(
    'when a change counts. `now`: at once, by PATCH /config; `deploy`: with the next deploy, which reads it again; `start`: with the next start of the master'
  ),
  isSecret: z.boolean().describe('whether its value may hold a secret; it is then not shown'),
  isUsed: z.boolean().describe(
    'false: it means nothing for the program that runs: it is for Node.js alone and the program is another one, or the other way round'
  )
}).meta({ id: 'Setting' })
