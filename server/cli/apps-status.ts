import { DeckError } from '../errors.ts'
import { runningDeckAt } from '../system/running-decks.ts'
import { decksTable, deckView } from './decks-table.ts'
import { isRunning, readDeckStatus, type Place } from './deck-status.ts'
import { appsOfHost } from './host.ts'
import { jsonText } from './output.ts'
import { BRING_BACK, rememberedApps } from './remembered.ts'
import type { Apps } from './apps.ts'
import type { Terminal } from './program.ts'

/**
 * Prints the state of several apps.
 * @throws {DeckError} no-master: none of them runs
 */
export async function appsStatus ({ file, apps }: Apps, { json }: { json?: true }, { stdout, env, cwd }: Terminal) {
  const remembered = rememberedApps(env)
  const rows = await rowsOf([...apps.values()], [...await appsOfHost(env).catch(() => []), ...remembered], { env, cwd })
  const items = rows.map((row) => ({ ...deckView(row), state: row.state, reason: row.reason,
    dependsOn: row.dependsOn })
  )
  stdout.write(`${json ? jsonText(items) : decksTable(rows, { now: Date.now() })}\n`)
  if (rows.some(({ answer }) => answer !== null)) return
  const isRemembered = rows.some(({ dataDir }) => remembered.some((app) => app.dataDir === dataDir))
  throw new DeckError('no-master', `none of the apps of ${file} runs${isRemembered ? `, and ${BRING_BACK}` : ''}`)
}

/** `known`: as the host has them, or remembers them */
async function rowsOf<T extends { name: string, dataDir: string }> (apps: T[],
  known: readonly { dataDir: string | null, state: string, reason?: string | null }[], place: Place)
{
  return await Promise.all(apps.map(async (app) => {
    const { dataDir } = app
    const answer = await isRunning(dataDir, place) ? await readDeckStatus(dataDir, place) : null
    const { state, reason = null } = known.find((each) => each.dataDir === dataDir) ??
      { state: answer ? 'running' : 'not running' }
    return { ...app, adminUrl: runningDeckAt(dataDir, place.env)?.adminUrl ?? null, answer, state, reason }
  }))
}
