import type { History } from '../../db/history.ts'
import type { Apps as AppsOfApi } from './api-apps.ts'
import type { Config } from '../config/config.ts'
import type { EventStream, Publisher } from '../events/stream.ts'
import type { AdminPort } from './admin-page.ts'
import type { AppPart, AppPolicy, Lent } from './app-part.ts'
import type { Apps } from './apps.ts'
import type { Host } from './host.ts'
import type { Records } from './records.ts'
import type { Shutdown } from './shutdown.ts'

/** Makes a kind of host. `apps`: of that host, once they are there */
export type MakeKind = (host: Host, apps: () => Apps) => Kind

/** What differs between the host of a user and one that is there for one app alone, in the foreground. */
export type Kind = {
  records: Records,
  policy: AppPolicy & Partial<Pick<Lent, 'scopes'>>,
  /** hears what concerns the host, and none of its apps */
  events: Publisher,
  /** Opens the apps that are to be open before the port is; null: none is. */
  openFirst: (apps: Apps) => Promise<Awaited<ReturnType<Apps['openAll']>> | null>,
  /**
   * This is the only master now. `parts`: of the apps that are open already; `failed`: why others could not be opened
   */
  begin: (parts: AppPart[], failed?: Error[]) => HostParts,
  /** The port is open, and the apps are about to begin. */
  tellStart?: (port: AdminPort) => void,
  /**
   * Tells the service manager how the host is. `untilDeploying`: resolves once the newest deploy that a signal has asked
   * for has begun. Returns null: the apps themselves tell it of a stop.
   */
  followService: (untilDeploying: () => Promise<void>) => { tellStopping: () => void, end: () => void } | null,
  /** The apps have begun, at `begunAt` (ms, monotonic). */
  watch?: (how: { port: AdminPort, shutdown: Shutdown, begunAt: number }) => void,
  /** The host is about to leave. */
  tellStop?: (startedAt: string, how: { actor?: string, cause?: string }) => void
}

/** What a host remembers and tells, and what its kind does in place of what a host does. */
export type HostParts =
  & Pick<AppsOfApi, 'alerts' | 'notices' | 'adoptions' | 'only'>
  & Partial<Pick<AppsOfApi, 'add' | 'changeVariables' | 'remove' | 'start' | 'upgradeHost'>>
  & {
    events: EventStream,
    history: History,
    /** what its keeper goes by */
    options: Pick<Config, 'keeper' | 'watchdog'>,
    /** resolves once the host may join its fleet: its app comes first */
    ready: Promise<unknown>,
    /** of the host itself; null: its app tells what there is to tell */
    ownHistory: History | null
  }
