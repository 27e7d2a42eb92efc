import { startOrder } from '../config/app-order.ts'
import { orderOfApp } from './app-orders.ts'
import { checkedApps, findApps } from './apps.ts'
import { runAttached } from './attached.ts'
import { fillHost } from './fill-host.ts'
import { misuse } from './usage.ts'
import type { Terminal } from './program.ts'

/**
 * Has the host run the apps of a config file: for as long as this runs, or until somebody stops them. `names`: none:
 * all.
 * @throws {DeckError} usage, invalid-config: nothing was started; start-failed: some are not ready, or failed
 */
export async function upCommand (names: string[],
  options: { config?: string, detach?: true, wait?: boolean, apply?: true, timeout?: string }, terminal: Terminal)
{
  const { detach = false, wait = true, apply = false, timeout } = options
  const found = await findApps('up', options, terminal)
  const named = checkedApps('up', names, found)
  const apps = startOrder(found.apps, named).flatMap((name) => found.apps.get(name) ?? [])
  const started = startOrder(found.apps,
    names.length > 0 ? named : named.filter((name) => found.apps.get(name)?.autostart))
  const wanted = apps.map((app) => ({ label: app.name, order: orderOfApp(app, found.file, terminal),
    dataDir: app.dataDir, isIdle: !started.includes(app.name) })
  )
  if (detach) return await fillHost(wanted, { command: 'up', waits: wait, applies: apply, timeout }, terminal)
  if (apply) throw misuse('--apply', 'with --detach', 'alone')
  if (!wait) throw misuse('--no-wait', 'with --detach', 'alone')
  await runAttached(wanted, { apps: found.apps, timeout }, terminal)
}
