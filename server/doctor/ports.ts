import { command, finding, type Check } from './finding.ts'
import type { Listener } from './machine.ts'

/** whether the ports are free for which the app asks, before it starts */
export const checkPorts: Check = ({ port, running, machine: { listeners }, settings, config: { admin } }) => {
  if (running) return []
  const isChosen = settings.some(({ name, source }) => name === 'admin.port' && source !== 'default')
  return [
    ...(port === null ? [] : [ofPort('port', 'PORT', port, listeners)]),
    // By default the next free one is taken.
    ...(isChosen && admin.port > 0 ? [ofPort('admin-port', 'admin.port', String(admin.port), listeners)] : [])
  ]
}

function ofPort (id: string, what: string, port: string, listeners: readonly Listener[]) {
  if (!/^\d{1,5}$/.test(port)) return finding(id, 'unknown', `${what} is no number`)
  if (!listeners.some((each) => each.port === Number(port))) return finding(id, 'ok', `Port ${port} (${what}) is free`)
  return finding(id, 'error', `Port ${port} (${what}) is in use by another process`,
    'The app cannot listen there, so no worker becomes ready.', [command(`ss -ltnp 'sport = :${port}'`)])
}
