import { startOrder } from '../config/app-order.js'
import { DeckError } from '../errors.js'
import { orderOfApp } from './app-orders.js'
import { checkedApps, findApps } from './apps.js'
import { runAttached } from './attached.js'
import { fillHost } from './fill-host.js'

/** @typedef {import('./program.js').Terminal} Terminal */

/**
 * Has the host run the apps of a config file: for as long as this runs, or until somebody stops them.
 * @param {string[]} names none: all @param {{ config?: string, detach?: true, wait?: boolean, timeout?: string }} options @param {Terminal} terminal
 * @throws {DeckError} usage, invalid-config: nothing was started; start-failed: some are not ready, or failed
 */
export async function upCommand (names, options, terminal) {
  const { detach = false, wait = true, timeout } = options
  const found = await findApps('up', options, terminal)
  const named = checkedApps('up', names, found)
  const apps = startOrder(found.apps, named).flatMap((name) => found.apps.get(name) ?? [])
  const started = startOrder(found.apps, names.length > 0 ? named : named.filter((name) => found.apps.get(name)?.autostart))
  const wanted = apps.map((app) => ({ label: app.name, order: orderOfApp(app, found.file, terminal), dataDir: app.dataDir, isIdle: !started.includes(app.name) }))
  if (detach) return await fillHost(wanted, { command: 'up', waits: wait, timeout }, terminal)
  if (!wait) throw new DeckError('usage', '--no-wait: expected with --detach, received alone')
  await runAttached(wanted, { apps: found.apps, timeout }, terminal)
}
