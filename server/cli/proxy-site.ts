import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import type { Status } from '../api/cluster.ts'

/** What a reverse proxy has to know of an app. Each text is safe in a comment, servers and path in double quotes. */
export type Site = {
  app: string,
  /** its host name; null: it is not known */
  domain: string | null,
  /** `app` as a part of a host name and as the name of an upstream */
  label: string,
  /** as status has them; the proxy leads to the first one */
  addresses: string[],
  /** such as `127.0.0.1:3000` or `unix:/run/app.sock`; one, or one for each slot */
  servers: string[],
  clients: 'any-worker' | 'slot-by-port' | 'one-slot',
  /** how long a connection to the app may wait for its next request */
  idleMs: number,
  /** how long an open WebSocket may say nothing */
  silentMinutes: number,
  /** of a slot; null: it has none */
  healthPath: string | null
}

const TCP = /^(?!udp:)\w+:\/\/(localhost|[\d.]+|\[[\da-f:]+\]):([1-9]\d{0,4})$/
/** The best one first. Another character in a path could end the directive, or mean a placeholder. */
const FORMS = [/^http:/, /^https:/, /^unix:\/[\p{L}\p{N}/ ._~@%+,=-]+$/u]
const HEALTH_PATH = /^\/[\w/.~%?&=+,:@!-]*$/
const ABOUT_CLIENTS: Readonly<Record<Site['clients'], string>> = Object.freeze({ 'any-worker': '',
  'slot-by-port': '\n# Each slot has a port, so clients stay. Print this anew after a change of scale.',
  'one-slot': '\n# WARNING: sticky by address, a proxy gets one slot alone. Set portPerSlot or sticky.by.' })

/** @throws {DeckError} not-possible */
export function siteOf ({ app: { name, addresses }, dispatch, workers }: Status, settings: ReadonlyMap<string, unknown>,
  domain: string | null = null): Site
{
  const usable = addresses.filter((each) => each.startsWith('unix:') || TCP.test(each))
  const [address] = FORMS.flatMap((form) => usable.filter((each) => form.test(each)))
  if (address === undefined)
    throw new DeckError('not-possible',
      `proxy: expected an address of HTTP, or a Unix socket whose path is of letters, digits and " ._~@%+,=-", received ${
        addresses.map((each) => JSON.stringify(each)).join(', ') || 'none'
      }`)
  const [, host, port] = TCP.exec(address) ?? []
  // An app that listens everywhere is at localhost, which proxies also look for at ::1.
  const serverAt = (at: unknown) => `${host === 'localhost' ? '127.0.0.1' : host}:${at}`
  const ports = [...new Set(workers.flatMap((each) => each.port ?? []))].sort((one, two) => one - two)
  const isSticky = dispatch === 'sticky'
  const isBySession = isSticky && [...settings].some(([name, by]) => name.startsWith('sticky.by.') && by !== null)
  // The ports of the slots are at the first TCP address.
  const isByPort = ports.length > 0 && !isBySession && address === usable.find((each) => TCP.test(each))
  const isOneSlot = isSticky && !isBySession && host !== undefined
  const healthPath = String(settings.get('ready.path'))
  return {
    app: oneLine(name),
    domain,
    label: name.toLowerCase().match(/[a-z\d]+/g)?.join('-').slice(0, 60) ?? 'app',
    addresses: [...new Set([address, ...addresses])].map(oneLine),
    servers: port === undefined ? [address] : isByPort ? ports.map(serverAt) : [serverAt(port)],
    clients: isByPort ? 'slot-by-port' : isOneSlot ? 'one-slot' : 'any-worker',
    // Node closes a connection that is idle for 5 s, and a draining worker one that is for drain.idleGraceMs.
    idleMs: Math.max(1, Math.min(4000, Math.floor(Number(settings.get('drain.idleGraceMs')) * 0.8))),
    silentMinutes: Math.max(60, Math.ceil(Number(settings.get('drain.longLivedMs')) / 60_000)),
    healthPath: isByPort && HEALTH_PATH.test(healthPath) ? healthPath : null
  }
}

/** @returns comments: what somebody should know of an app before its configuration */
export function remarksOn ({ app, addresses, clients }: Site): string {
  const socket = '\n# The proxy must be able to write to the socket. In Node: listen({ path, writableAll: true })'
  return `# ${app} at ${addresses.join(', also at ')}${addresses[0].startsWith('unix:') ? socket : ''}${
    ABOUT_CLIENTS[clients]
  }`
}
