import { DeckError } from '../errors.js'
import { runningDeckAt } from '../system/running-decks.js'
import { decksTable, deckView } from './decks-table.js'
import { isRunning, readDeckStatus } from './deck-status.js'
import { appsOfHost } from './host.js'
import { jsonText } from './output.js'
import { BRING_BACK, rememberedApps } from './remembered.js'

/** @typedef {import('./apps.js').Apps} Apps */
/** @typedef {import('./deck-status.js').Place} Place */

/**
 * Prints the state of several apps.
 * @param {Apps} apps @param {{ json?: true }} options @param {import('./program.js').Terminal} terminal
 * @throws {DeckError} no-master: none of them runs
 */
export async function appsStatus ({ file, apps }, { json }, { stdout, env, cwd }) {
  const remembered = rememberedApps(env)
  const rows = await rowsOf([...apps.values()], [...await appsOfHost(env).catch(() => []), ...remembered], { env, cwd })
  const items = rows.map((row) => ({ ...deckView(row), state: row.state, reason: row.reason, dependsOn: row.dependsOn }))
  stdout.write(`${json ? jsonText(items) : decksTable(rows, { now: Date.now() })}\n`)
  if (rows.some(({ answer }) => answer !== null)) return
  const isRemembered = rows.some(({ dataDir }) => remembered.some((app) => app.dataDir === dataDir))
  throw new DeckError('no-master', `none of the apps of ${file} runs${isRemembered ? `, and ${BRING_BACK}` : ''}`)
}

/**
 * @template {{ name: string, dataDir: string }} T
 * @param {T[]} apps @param {readonly { dataDir: string | null, state: string, reason?: string | null }[]} known as the host has them, or remembers them @param {Place} place
 */
async function rowsOf (apps, known, place) {
  return await Promise.all(apps.map(async (app) => {
    const { dataDir } = app
    const answer = await isRunning(dataDir, place) ? await readDeckStatus(dataDir, place) : null
    const { state, reason = null } = known.find((each) => each.dataDir === dataDir) ?? { state: answer ? 'running' : 'not running' }
    return { ...app, adminUrl: runningDeckAt(dataDir, place.env)?.adminUrl ?? null, answer, state, reason }
  }))
}
