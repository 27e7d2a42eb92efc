import { existsSync } from 'node:fs'
import path from 'node:path'
import { formatBytes } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { count } from '../words/health.ts'
import { hostFolder } from '../system/host-folder.ts'
import { oneLine } from '../system/one-line.ts'
import { createTools } from '../cli/context.ts'
import { findHost } from '../cli/host.ts'
import { createInterruption } from '../cli/interruption.ts'
import { formatTable } from '../cli/output.ts'
import type { Terminal } from '../cli/program.ts'
import type { Backup } from './restore.ts'
import type { Manifest } from './manifest.ts'

type BackupOptions = { withSecrets?: boolean, force?: boolean, json?: true }
type RestoreOptions = { updateEnv?: boolean, dryRun?: boolean, force?: boolean, json?: true }
type App = Backup['apps'][number]
/** `variables`, `files`: that are missing */
type Restored = { name: string, state: string, release: string | null, dataDir: string, variables: string[],
  alerts: number, files: string[] }
type Result = Pick<Backup, 'createdAt' | 'version' | 'tokens'> & { isDone: boolean, refused: string | null,
  hostFolder: string, alertsLeftOut: number, apps: Restored[], putAside: string[] }

export async function backupCommand (named: string,
  { withSecrets: hasSecrets = false, force = false, version, ...options }: BackupOptions & { version: string },
  terminal: Terminal)
{
  const { createBackup } = await import('./backup.ts')
  const file = path.resolve(terminal.cwd, named)
  const { stop: signal, leave } = createInterruption()
  try {
    const { bytes, apps, alerts, createdAt } = await createBackup(file, { folder: hostFolder(terminal.env), version,
      hasSecrets, isForced: force, signal })
    const result = { file, bytes, createdAt, hasSecrets, alertsLeftOut: alerts,
      apps: apps.map(({ record: { name, dataDir }, variables, alerts }) => ({ name, dataDir,
        variablesLeftOut: variables, alertsLeftOut: alerts })
      ) }
    createTools(options, terminal).answer(result, () =>
      [`${file} has the host with ${count(apps.length, 'app')} (${formatBytes(bytes)})`, ...hasSecrets
        ? ['it has secrets: whoever can read it can do what the host can']
        : leftOutLines({ apps, alerts })].join('\n'))
  } finally {
    leave()
  }
}

export async function restoreCommand (named: string,
  { updateEnv = false, dryRun = false, force = false, ...options }: RestoreOptions, terminal: Terminal)
{
  const [{ openBackup, restoreBackup, takenPlaces }, { withVariables }] = await Promise.all([import('./restore.ts'),
    import('./bare-record.ts')])
  const folder = hostFolder(terminal.env)
  const backup = await openBackup(path.resolve(terminal.cwd, named))
  try {
    const apps = backup.apps.map((app) => {
      const { record, missing } = withVariables(app.record, app.variables, updateEnv ? terminal.env : {})
      return { ...app, record, variables: missing }
    })
    const refusal = whyNot(terminal.env, force ? [] : takenPlaces(backup, folder))
    if (refusal && !dryRun) throw refusal
    const aside = dryRun ? [] : await restoreBackup({ ...backup, apps }, folder)
    const { version, createdAt, tokens, alerts } = backup
    const result: Result = { isDone: !dryRun, refused: refusal?.message ?? null, createdAt, version, hostFolder: folder,
      tokens, alertsLeftOut: alerts, apps: apps.map(toRestored), putAside: aside }
    createTools(options, terminal).answer(result, () => restoredText(result, leftOutLines({ apps, alerts })))
  } finally {
    backup.close()
  }
}

/** `taken`: files that are there. Returns null: it can be restored now. */
function whyNot (env: Terminal['env'], taken: string[]): DeckError | null {
  const host = findHost(env)
  if (host)
    return new DeckError('master-running',
      `the host (pid ${host.recipient?.processes[0].pid}) runs: first run "clusterdeck down --all"`)
  if (taken.length === 0) return null
  return new DeckError('usage',
    `restore: expected folders without apps and history, or --force, which puts what is there aside, received ${
      taken.join(', ')
    }`)
}

function toRestored ({ record: { name, wish, runs, dataDir, order }, variables, alerts }: App): Restored {
  const files = [order.cwd, ...runs ? [runs.release.entry] : []].filter((file) => !existsSync(file))
  return { name, state: wish, release: runs?.release.id ?? null, dataDir, variables, alerts, files }
}

function restoredText ({ isDone, refused, createdAt, version, tokens, apps, putAside }: Result, leftOut: string[]) {
  const table = formatTable(['NAME', 'STARTS', 'RELEASE', 'DATA FOLDER'],
    apps.map(({ name, state, release, dataDir }) => [name, state === 'running' ? 'yes' : 'no', release, dataDir]))
  const missing = apps.filter(({ files }) => files.length > 0).map(({ name, files }) =>
    oneLine(`missing here, of ${name}: ${files.join(', ')}`)
  )
  return [
    `${isDone ? 'restored:' : 'the backup has'} the host with ${
      count(apps.length, 'app')
    }, as of ${createdAt} (clusterdeck ${version})`,
    table,
    ...leftOut,
    ...missing,
    ...tokens > 0
      ? [`${count(tokens, 'token')} will be valid again, also what was revoked since: clusterdeck tokens`]
      : [],
    ...putAside.map((place) => `what was there is in ${place}`),
    isDone ? 'next: clusterdeck host --detach' : refused ? `it would be refused: ${refused}` : 'nothing was changed'
  ].join('\n')
}

function leftOutLines ({ apps, alerts }: Pick<Manifest, 'apps' | 'alerts'>): string[] {
  const lines = apps.flatMap((
    { record: { name }, variables, alerts }
  ) => [...variables.length > 0 ? [`left out, of ${name}: the variables ${variables.join(', ')}`] : [],
    ...alerts > 0 ? [`left out, of ${name}: ${count(alerts, 'alert')}`] : []]
  )
  return [...lines, ...alerts > 0 ? [`left out, of the host: ${count(alerts, 'alert')}`] : []].map(oneLine)
}
