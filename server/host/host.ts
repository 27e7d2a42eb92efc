import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { checkExposure } from '../config/exposure.ts'
import { DeckError } from '../errors.ts'
import { stayLean } from '../keeper/lean.ts'
import { openDataDir } from '../system/data-dir.ts'
import { createLog } from '../system/log.ts'
import { adminPlace } from '../systemd/admin-place.ts'
import { createTerminal } from '../terminal.ts'
import { createAppScopes } from './app-scopes.ts'
import { createFleetMembership } from './fleet-membership.ts'
import type { HostConfig } from '../config/config.ts'
import type { KeeperLink } from '../keeper/link.ts'
import type { Closers } from '../system/closers.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const SOFTWARE = Object.freeze({ version, nodeVersion: process.version })

/** `isGuest`: the process is another program's, with its signals, its children and what its environment says. */
export type Surroundings = { stdout?: NodeJS.WritableStream, stderr?: NodeJS.WritableStream, isGuest?: boolean }
export type Host = Awaited<ReturnType<typeof openHost>>

/**
 * What a process has once, whatever apps are in it. It may be there twice, in two masters of an upgrade.
 * @throws {import('../errors.ts').DeckError} invalid-config, not-possible, data-dir-unusable, start-failed
 */
export async function openHost (config: HostConfig, keeper: KeeperLink,
  { stdout = process.stdout, stderr = process.stderr, isGuest = false }: Surroundings, closers: Closers)
{
  if (!cluster.isPrimary)
    throw new DeckError('not-possible',
      'start: expected a process that may have workers, and this one is itself a worker of node:cluster')
  if (keeper.isKept) stayLean()
  const place = adminPlace(config.admin, keeper)
  // A service manager's socket may be another one than the configured.
  checkExposure({ ...config.admin, host: place.host })
  const dataDir = openDataDir(config.dataDir)
  const log = createLog(dataDir.logFile)
  const terminal = createTerminal({ stdout, stderr })
  if (dataDir.away) terminal.fail(dataDir.away)
  const scopes = closers.add(
    createAppScopes({ onFatal: (error) => log.fatal({ err: error }, 'the master failed'), onLateFault: (error, app) =>
      log.error({ err: error, app }, 'what is left of an app that has failed or is closed failed') }),
    ({ close }) =>
      close()
  )
  const fleetMembership = createFleetMembership(config, log)
  return { keeper, place, dataDir, log, terminal, scopes, streams: { stdout, stderr }, software: SOFTWARE,
    fleetMembership, isGuest, closers }
}
