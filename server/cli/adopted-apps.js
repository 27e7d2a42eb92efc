import { readDeckStatus } from './deck-status.js'
import { decksTable } from './decks-table.js'

/**
 * Prints what the host runs by now.
 * @param {readonly string[]} names  of apps that have moved into it
 * @param {{ host: import('./api-client.js').ApiClient, url: string, terminal: import('./program.js').Terminal, answer: import('./commands.js').Tools['answer'] }} how  `url`: of the host
 */
export async function showApps (names, { host, url, terminal, answer }) {
  const views = await Promise.all(names.map((name) => host.get(`/apps/${name}`)))
  const rows = await Promise.all(views.map(async ({ name, dataDir, path, state }) => ({ name, dataDir, adminUrl: `${url}${path}`, answer: await readDeckStatus(dataDir, terminal), state })))
  answer(views, () => decksTable(rows, { now: Date.now() }))
}
