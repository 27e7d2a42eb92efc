import { caddyText } from './proxy-caddy.ts'
import { nginxText } from './proxy-nginx.ts'
import { siteOf, type Site } from './proxy-site.ts'
import { checkedForm } from './usage.ts'
import type { Outcome } from './app-command.ts'
import type { Context, Options } from './commands.ts'
import type { Status } from '../api/cluster.ts'
import type { Setting } from '../api/shapes.ts'

const TEXTS = Object.freeze({ nginx: nginxText, caddy: caddyText })
type Proxy = keyof typeof TEXTS
type Result = Site & { proxy: Proxy, configuration: string }

/** Labels of letters, digits and dashes; no address of IPv4. */
const HOST_NAME = /^(?=.{1,253}$)(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)*(?!\d+$)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i

/** Prints how a reverse proxy reaches an app. `word`: which proxy, nginx or caddy */
export async function proxyCommand ({ api, options, answer }: Context, word?: string | string[]) {
  const proxy = word as Proxy
  const domain = domainIn(options)
  const status = await api.get<Status>('/status')
  const { items } = await api.get<{ items: Setting[] }>('/config')
  const site = siteOf(status, new Map(items.map(({ name, value }) => [name, value])), domain)
  const configuration = TEXTS[proxy]([site])
  answer({ proxy, ...site, configuration } satisfies Result, () => configuration.trimEnd())
}

/** Makes one file for several apps, each with a host name of its own: its own one below the domain. */
export function proxyOfAll (outcomes: Outcome[]): string {
  const results = outcomes.flatMap(({ result, error }) => error ? [] : [result as Result])
  const named = results.map((site) => ({ ...site, domain: `${site.label}.${site.domain ?? 'example.com'}` }))
  return results.length === 0 ? '' : TEXTS[results[0].proxy](named).trimEnd()
}

/** @throws {DeckError} usage */
function domainIn ({ domain }: Options): string | null {
  if (domain === undefined) return null
  return checkedForm('--domain', HOST_NAME, 'a host name such as example.com', domain)
}
