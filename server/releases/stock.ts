import { createCatalogue } from './catalogue.ts'
import { createInPlace } from './in-place.ts'
import { createManifests } from './manifests.ts'
import { createModuleCache } from './module-cache.ts'
import { createReleaseFolders } from './release-folders.ts'
import type { Config } from '../config/config.ts'
import type { History } from '../../db/history.ts'
import type { EventStream } from '../events/stream.ts'
import type { Release } from '../lifecycle/state.ts'
import type { createCommitFinder } from './commit-finder.ts'
import type { Drift } from './drift.ts'
import type { LaunchSource, WorkerConfig } from './launch-spec.ts'
import type { Launches } from './launches.ts'
import type { createMaker } from './maker.ts'
import type { createReturns } from './returns.ts'
import type { SecretMask } from './secret-mask.ts'

export type Stock = ReturnType<typeof createStock>
type Cluster = { releasesInUse: () => string[], addresses?: () => string[],
  snapshot: () => { release: { id: string } } }

/** What is around the releases of an app. */
export type ReleaseServices = {
  config: Config,
  history: Pick<History, 'releases' | 'lastReleaseNumber'>,
  /** the highest n of `r<n>` that the master before knows of */
  lastNumber: number,
  /** runs the releases; null: it has not been made yet */
  cluster: () => Cluster | null,
  /** the ids of the releases that jobs and commands run in */
  usedByRuns: () => readonly string[],
  events: Pick<EventStream, 'publish'>,
  /** the release that the master goes on with; null: it begins with one of what is configured */
  before: Release | null,
  /** the release that ran, and can run again */
  last: Release | null,
  /** the variables of `before`, in place of what the configuration says now; one that is null is not set */
  variables?: Record<string, string | null>,
  /** for its secrets, as workers of the master before serve meanwhile */
  canWait: boolean,
  /** reads the configuration anew, for the app in that folder */
  reload?: (launchIn?: string) => Promise<WorkerConfig>,
  dataDir: { folder: string, releaseFolder: string, releaseKey: () => string },
  /** knows which files the workers have loaded */
  drift: Pick<Drift, 'knows' | 'of'>,
  /** is to hide all secrets that are read */
  mask: Pick<SecretMask, 'add'>,
  /** the order that the master begins with, and the variables of the shell that it is from, which git has too */
  order: LaunchSource['order'],
  inherited: LaunchSource['inherited'],
  /** the newest order, for a deploy */
  source?: () => LaunchSource,
  /** for errors that harm no deploy */
  onError: (error: unknown) => void,
  /** wall clock, ms */
  now: () => number
}

/** What the parts of the registry share. */
export function createStock (services: ReleaseServices) {
  const { dataDir: { folder: dataFolder, releaseFolder, releaseKey }, drift, cluster, usedByRuns, onError } = services
  const catalogue = createCatalogue(services)
  /** The id of the last release that was deployed successfully. */
  const current = () => cluster()?.snapshot().release.id ?? null

  return {
    ...services,
    /** of digests */
    key: releaseKey(),
    catalogue,
    folders: createReleaseFolders({ dataFolder, releaseFolder, onError }),
    modules: createModuleCache({ releaseFolder, onError }),
    manifests: createManifests({ dataDir: services.dataDir, catalogue, onError }),
    inPlace: createInPlace({ catalogue, drift }),
    current,
    running: () => catalogue.find(current() ?? ''),
    /** @returns the ids of the releases that a worker, a slot or a run has */
    used: () => new Set([...cluster()?.releasesInUse() ?? [], ...usedByRuns()]),
    /** the release that this master has begun with */
    first: null as Release | null,
    /** The id of the release that a caller got last: its rollout may be about to begin. */
    givenOut: ''
  }
}

/** The parts that use the others. */
export type ReleaseParts = { maker: ReturnType<typeof createMaker>, launches: Launches,
  commits: ReturnType<typeof createCommitFinder>, returns: ReturnType<typeof createReturns> }
