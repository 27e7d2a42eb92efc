import type { History } from '../../db/history.ts'
import type { Apps as AppsOfApi } from '../api/apps.ts'
import type { Config } from '../config/config.ts'
import type { EventStream, NewEvent } from '../events/stream.ts'
import type { AdminPort } from './admin-page.ts'
import type { AppPart, Lent, WaysOfHost } from './app-part.ts'
import type { Apps } from './apps.ts'
import type { Host } from './host.ts'
import type { Records } from './records.ts'
import type { Shutdown } from './shutdown.ts'

/** `apps`: of that host, once they are there; `siteLoaded`: resolves once its pages answer */
export type MakeKind = (host: Host, later: { apps: () => Apps, siteLoaded: Promise<unknown> }) => Kind

/** What differs between the host of a user and one that is there for one app alone, in the foreground. */
export type Kind = {
  records: Records,
  ways: WaysOfHost & Partial<Pick<Lent, 'scopes'>>,
  /** of what concerns the host, and none of its apps */
  events: { publish: (event: NewEvent) => unknown },
  /** Opens the apps that are to be open before its port; null: there is none. */
  openFirst: (apps: Apps) => Promise<Awaited<ReturnType<Apps['openAll']>> | null>,
  /** This is the only master. `parts`: of the apps that are open already; `failed`: why others could not be opened */
  begin: (parts: AppPart[], failed?: Error[]) => Side,
  /** Its port is open, and its apps are about to begin. */
  tellStart: (port: AdminPort, startedAt: string) => void,
  /** Follows the service manager. `deploying`: resolves once the newest deploy that a signal has asked for has begun. */
  followService: (deploying: () => Promise<void>) => { tellStopping: () => void, end: () => void },
  /** Its apps have begun. */
  watch: (port: AdminPort, shutdown: Shutdown) => void,
  /** It is about to leave. */
  tellStop: (startedAt: string, how: { actor?: string, cause?: string }) => void
}

/** What is remembered and told of a host. */
export type Side =
  & Pick<AppsOfApi, 'alerts' | 'notices' | 'adoptions' | 'only'>
  & Partial<Pick<AppsOfApi, 'add' | 'changeVariables' | 'remove' | 'start' | 'upgradeHost'>>
  & {
    events: EventStream,
    history: History,
    /** what its keeper goes by */
    options: Pick<Config, 'keeper' | 'watchdog'>,
    /** what comes before its pages are loaded, unless somebody asks for one */
    loadAfter?: Promise<unknown>,
    /** of the host itself; null: its app tells what there is to tell */
    ownHistory: History | null
  }
