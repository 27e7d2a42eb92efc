import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { askApps, decksTable, deckView, isRunning, readDeckStatus } from './decks-table.ts'
import { callHost, findHost, listApps } from './host.ts'
import { appAt, appsOfHost, BRING_BACK, byName, knownApps, ofView, type KnownApp } from './known-apps.ts'
import { jsonText } from './output.ts'
import type { Terminal } from './program.ts'
import type { ApiClient } from './api-client.ts'
import type { Apps } from './apps.ts'
import type { Tools } from './commands.ts'
import type { Master } from './find-master.ts'
import type { Notice } from '../events/api-notices.ts'

/**
 * Lists the apps of the host of this user, also those that do not run, or that it remembers while it does not run
 * itself; and the decks that run without a host.
 * @throws {DeckError} runtime-dir-unusable, data-dir-unusable
 */
export async function lsCommand ({ json }: { json?: true }, { stdout, stderr, env, cwd }: Terminal) {
  const { apps, problem } = await knownApps(env)
  if (problem) stderr.write(`clusterdeck: the host does not tell of its apps: ${oneLine(problem.message)}\n`)
  const rows = (await askApps(apps, { env, cwd })).sort(byName)
  const text = json
    ? jsonText(rows.map(deckView))
    : rows.length === 0
    ? 'no deck of this user runs on this machine'
    : decksTable(rows, { now: Date.now(), hasFolders: true })
  stdout.write(`${text}\n`)
  const host = json || !apps.some(({ view }) => view !== null) ? null : findHost(env)
  if (host) { for (const notice of await noticesOf(host, env)) stderr.write(`clusterdeck: ${notice}\n`) }
  if (apps.some(isRemembered)) stderr.write(`clusterdeck: ${BRING_BACK}\n`)
}

/**
 * Prints the state of several apps.
 * @throws {DeckError} no-master: none of them runs
 */
export async function appsStatus ({ file, apps }: Apps, { json }: { json?: true }, { stdout, env, cwd }: Terminal) {
  const known = await appsOfHost(env).catch(() => [])
  const rows = await Promise.all([...apps.values()].map(async ({ name, dataDir, dependsOn }) => {
    const app = { ...appAt(dataDir, name, known, env), name, dependsOn }
    const answer = await isRunning(dataDir, { env, cwd }) ? await readDeckStatus(dataDir, { env, cwd }) : null
    return { ...app, state: answer && app.state === 'not running' ? 'running' as const : app.state, answer }
  }))
  stdout.write(`${json ? jsonText(rows.map(deckView)) : decksTable(rows, { now: Date.now() })}\n`)
  if (rows.some(({ answer }) => answer !== null)) return
  throw new DeckError('no-master',
    `none of the apps of ${file} runs${rows.some(isRemembered) ? `, and ${BRING_BACK}` : ''}`)
}

/** Prints what the host runs by now. `names`: of apps that have moved into it; `url`: of the host. */
export async function showApps (names: readonly string[],
  { host, url, terminal, answer }: { host: ApiClient, url: string, terminal: Terminal, answer: Tools['answer'] })
{
  const views = (await listApps(host)).filter(({ name }) => names.includes(name))
  const rows = await askApps(views.map((view) => ofView(view, url, terminal.env)), terminal)
  answer(views, () => decksTable(rows, { now: Date.now() }))
}

/** Tells whether it is of a host that does not run */
function isRemembered ({ isInHost, view, pid }: KnownApp) {
  return isInHost && view === null && pid === null
}

/** What has gone wrong with the host itself. */
async function noticesOf (host: Master, env: Terminal['env']) {
  const { items } = await callHost(host, { env }).get<{ items: Notice[] }>('/host/notices').catch(() => {
    // A host of an older version has none, and one that does not answer has been told of.
    return { items: [] }
  })
  return items.map(({ id, message, at }) =>
    oneLine(`${message} (${at}; once you know: clusterdeck acknowledge ${id} --host)`)
  )
}
