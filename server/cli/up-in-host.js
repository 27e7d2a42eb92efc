import { orderOfApp } from './app-orders.js'
import { fillHost } from './fill-host.js'

/**
 * Lets the host run apps of a config file.
 * @param {readonly import('./apps.js').App[]} apps each after those that it depends on
 * @param {{ file: string, options: { noWait?: true, timeout?: string } }} how `file`: the config file
 * @param {import('./program.js').Terminal} terminal
 * @throws {import('../errors.js').DeckError} start-failed: some are not ready
 */
export async function upInHost (apps, { file, options: { noWait, timeout } }, terminal) {
  const wanted = apps.map((app) => ({ label: app.name, order: orderOfApp(app, file, terminal) }))
  await fillHost(wanted, { command: 'up', waits: !noWait, timeout }, terminal)
}
