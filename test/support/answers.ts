import type { Alert, Delivery } from '../../server/alerts/api.ts'
import type { AppView } from '../../server/host/api-apps.ts'
import type { OpenRequests, Status, Worker } from '../../server/api/cluster.ts'
import type { CrashGroup, CrashGroupInFull } from '../../server/crashes/api.ts'
import type { Diagnostics } from '../../server/diagnostics/api.ts'
import type { EventCounts } from '../../server/events/api-counts.ts'
import type { Fleet, FleetRollout } from '../../server/fleet/api-answers.ts'
import type { FleetEvent } from '../../server/fleet/api-events.ts'
import type { FleetCrashes, SettledFleetCrash } from '../../server/fleet/api-crashes.ts'
import type { JoinedLine, JoinedLines } from '../../server/logs/api-joined.ts'
import type { FleetPreview } from '../../server/fleet/api-preview.ts'
import type { Summary } from '../../server/fleet/api.ts'
import type { Histogram } from '../../server/events/api-histogram.ts'
import type { HostFleet } from '../../server/fleet/api-answers.ts'
import type { AdoptionView, Host, NewAdoption } from '../../server/host/api.ts'
import type { Job, KeptRun, Run } from '../../server/jobs/api.ts'
import type { Notice } from '../../server/events/api-notices.ts'
import type { Document } from '../../server/api/openapi.ts'
import type { ProfileChanges, ProfileFunctions } from '../../server/diagnostics/api-profiles.ts'
import type { Comparison } from '../../server/releases/api-comparison.ts'
import type { KeptRelease } from '../../server/api/shapes.ts'
import type { Rollout, RolloutInFull } from '../../server/rollouts/api.ts'
import type { RouteList } from '../../server/vitals/api-routes.ts'
import type { Report, Setting } from '../../server/api/shapes.ts'
import type { Token } from '../../server/access/api-tokens.ts'
import type { Upgrade } from '../../server/handover/api.ts'
import type { Series } from '../../server/vitals/api.ts'
import type { Deck } from '../../server/deck.ts'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { toProblem } from '../../server/problem.ts'

/** How the API refuses. */
export type Problem = ReturnType<typeof toProblem>

/**
 * What the API answers to a call that it does not refuse, where nothing else is said by `T`. `M`: any other than a
 * literal is GET; `P`: below /api/v1 or with it, also of an app of a host, or of another member
 */
export type AnswerTo<M extends string, P extends string, T = never> = [T] extends [never]
  ? RouteAnswer<string extends M ? 'GET' : Uppercase<M>, P>
  : T

/** The same, with what a refusal has instead: the status tells which of both it is. */
export type AnswerOrProblem<M extends string, P extends string, T = never> = [T] extends [never]
  ? AnswerTo<M, P> & { [Name in Exclude<'code' | 'detail', keyof AnswerTo<M, P>>]?: string }
  : T

type RouteAnswer<M extends string, P extends string> = P extends `${string}/crashes?member=${string}` ? FleetCrashes
  : P extends `${string}/events?member=${string}` ? Page<FleetEvent>
  : P extends `${string}/logs?member=${string}` ? JoinedLines<'member'>
  : P extends `${infer Path}?${string}` ? RouteAnswer<M, Path>
  : P extends `${string}/api/v1${infer Rest}` | `/fleet/members/${string}/api${infer Rest}` ? RouteAnswer<M, Rest>
  : P extends `/apps/${string}/${'start' | 'stop'}` ? AppView
  : P extends `/host/alerts${infer Rest}` ? RouteAnswer<M, `/alerts${Rest}`>
  : P extends '/host/notices' ? List<Notice>
  : P extends `/apps/${string}/${infer Rest}` ? RouteAnswer<M, `/${Rest}`>
  : `${M} ${P}` extends keyof Answers ? Answers[`${M} ${P}`]
  : unknown

type List<T> = { items: T[] }
type Page<T> = { items: T[], next: string | null }
export type NewToken = Token & { token: string }
type Pushed = { digest: string, bytes: number, pushedAt: string, actor: string | null }
type Id = `${number}`

/** By method and path, without those whose answers no test looks into. */
type Answers = { 'GET /status': Status, 'GET /workers': List<Worker>, [worker: `GET /workers/${Id}`]: Worker,
  [requests: `GET /workers/${Id}/requests`]: OpenRequests, [restart: `POST /workers/${Id}/restart`]: Rollout,
  [taken: `POST /workers/${Id}/diagnostics`]: Diagnostics, 'POST /messages': { workers: number[] },
  'GET /scale': { desiredWorkers: number }, 'PUT /scale': { desiredWorkers: number }, 'POST /upgrade': Upgrade,
  'POST /host/upgrade': Upgrade, 'GET /rollouts': Page<Rollout>, 'POST /rollouts': Rollout,
  'POST /rollouts/preview': Awaited<ReturnType<Deck['preview']>>, [rollout: `GET /rollouts/${Id}`]: RolloutInFull,
  [steered: `POST /rollouts/${Id}/${'pause' | 'resume' | 'abort' | 'promote' | 'retry'}`]: Rollout,
  'GET /releases': Page<KeptRelease>, [release: `GET /releases/r${Id}`]: KeptRelease,
  [compared: `GET /releases/r${Id}/compare`]: Comparison, 'POST /releases': Run,
  'GET /refs': List<{ name: string, kind: 'branch' | 'tag', commit: string, at: string, subject: string }>,
  'GET /events': Page<DeckEvent>, [event: `GET /events/${Id}`]: DeckEvent, 'GET /events/counts': EventCounts,
  'GET /events/histogram': Histogram, 'GET /host/events': Page<DeckEvent>,
  [lines: `GET /host/logs${string}`]: JoinedLines<'app'> & { apps: object },
  [event: `GET /host/events/${Id}`]: DeckEvent, 'GET /notices': List<Notice>, 'GET /crashes': Page<CrashGroup>,
  [group: `GET /crashes/${Id}`]: CrashGroupInFull,
  [crash: `GET /crashes/${Id}/occurrences/${Id}`]: NonNullable<CrashGroupInFull['latest']>,
  [state: `POST /crashes/${Id}/${'resolve' | 'mute' | 'reopen'}`]: CrashGroup,
  [lines: `GET /logs${string}`]: Page<Omit<JoinedLine, 'member'>>, 'GET /vitals': Series,
  'GET /profiles/functions': ProfileFunctions, 'GET /profiles/changes': ProfileChanges,
  [routes: `GET /routes${string}`]: RouteList, 'GET /config': List<Setting>, 'PATCH /config': List<Setting>,
  'GET /checks': Report, 'GET /diagnostics': List<Diagnostics>, [diagnostics: `GET /diagnostics/${Id}`]: Diagnostics,
  'GET /jobs': List<Job>, [job: `POST /jobs/${string}/${'acknowledge' | 'pause' | 'resume'}`]: Job,
  [runs: `GET /jobs/${string}/runs`]: Page<Run>, [run: `POST /jobs/${string}/runs`]: Run, 'GET /jobs/runs': Page<Run>,
  'POST /jobs/runs': Run, [run: `GET /jobs/runs/${Id}`]: KeptRun, [ended: `POST /jobs/runs/${Id}/end`]: Run,
  'GET /alerts': List<Alert>, 'POST /alerts': Alert, [alert: `GET /alerts/${string}`]: Alert,
  [alert: `PATCH /alerts/${string}`]: Alert, [tested: `POST /alerts/${string}/test`]: Delivery,
  [retried: `POST /alerts/${string}/retry`]: Delivery, 'GET /tokens': List<Token>, 'POST /tokens': NewToken,
  [revoked: `DELETE /tokens/${Id}`]: Token & { alsoEnded: number[] },
  'POST /sign-in-links': { url: string, expiresAt: string, until: string, token: number | null },
  'GET /openapi.json': Document, 'GET /fleet': Fleet, 'GET /fleet/rollouts': List<Summary>,
  [rollout: `GET /fleet/rollouts/${Id}`]: FleetRollout, 'POST /fleet/rollout': FleetRollout,
  'POST /fleet/rollout/preview': FleetPreview, 'POST /fleet/rollout/pause': FleetRollout,
  'POST /fleet/rollout/resume': FleetRollout, 'POST /fleet/rollout/abort': FleetRollout,
  'GET /fleet/releases': List<Pushed>, 'POST /fleet/releases': Pushed & { isNew: boolean },
  [settled: `POST /fleet/crashes/${string}/${'resolve' | 'mute' | 'reopen'}`]: SettledFleetCrash, 'GET /host': Host,
  'POST /host/stop': { state: 'stopping' }, 'GET /host/fleet': HostFleet, 'POST /host/adoptions': NewAdoption,
  [adoption: `GET /host/adoptions/${Id}`]: AdoptionView, 'GET /apps': List<AppView>, 'POST /apps': AppView,
  [app: `GET /apps/${string}`]: AppView }
