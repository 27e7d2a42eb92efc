import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caddyText } from '../../../server/cli/proxy-caddy.ts'
import { nginxText } from '../../../server/cli/proxy-nginx.ts'
import { siteOf } from '../../../server/cli/proxy-site.ts'
import { fake } from '../../support/fake.ts'
import { testStates } from '../../support/golden.ts'
import { complaintsOf, without } from '../../support/proxies.ts'
import { rareOnly } from '../../support/rare.ts'
import { openDeck } from '../../support/deck-folder.ts'
import type { Status } from '../../../server/api/cluster.ts'

type App = { name?: string, addresses?: string[], dispatch?: Status['dispatch'], ports?: number[],
  settings?: Record<string, unknown>, domain?: string }

const SETTINGS = { 'drain.idleGraceMs': 5000, 'drain.longLivedMs': 14_400_000, 'ready.path': null,
  'sticky.by.header': null }

const STATES: Record<string, App[]> = { 'an app at a port, with a host name': [{ domain: 'shop.example.com' }],
  'two apps': [{ domain: 'shop.example.com' }, { name: '@acme/Mail', domain: 'acme-mail.example.com',
    addresses: ['http://[::1]:4000', 'https://10.0.0.5:4443'] }],
  'a port for each slot, a path that says whether it is ready, short times': [{ dispatch: 'sticky',
    ports: [4002, 4001, 4002],
    settings: { 'ready.path': '/health?deep=1', 'drain.idleGraceMs': 1000, 'drain.longLivedMs': 0 } }],
  'sticky by address, without ports': [{ dispatch: 'sticky' }],
  'sticky by session, with ports': [{ dispatch: 'sticky', ports: [4001],
    settings: { 'sticky.by.header': 'mcp-session-id' } }],
  'TLS of its own': [{ addresses: ['udp://localhost:53', 'https://localhost:4443', 'unix:/run/shop.sock'] }],
  'a Unix socket': [{ addresses: ['unix:@shop', 'unix:/run/my shop+1.sock'] }],
  'sticky by session, but shared': [{ ports: [4001], settings: { 'sticky.by.header': 'mcp-session-id' } }],
  'what is hostile': [{ name: 'x\n}\nserver { return 200; } # {$HOME}', ports: [4001],
    addresses: ['http://evil.example.com:80', 'http://localhost:3000;}', 'http://localhost:3000',
      'unix:/a";}\nroot /;'], settings: { 'ready.path': '/"}{env.HOME}' } }] }

const PLAIN: Required<Omit<App, 'domain'>> = { name: 'shop', addresses: ['http://localhost:3000'], dispatch: 'shared',
  ports: [], settings: {} }

function sitesOf (apps: App[]) {
  return apps.map((app) => {
    const { name, addresses, dispatch, ports, settings } = { ...PLAIN, ...app }
    const status = fake<Status>({ app: { name, addresses }, dispatch, workers: ports.map((port) => ({ port })) })
    return siteOf(status, new Map(Object.entries({ ...SETTINGS, ...settings })), app.domain)
  })
}

for (const [proxy, textOf] of [['nginx', nginxText], ['caddy', caddyText]] as const) {
  testStates(import.meta, proxy, STATES, (apps) => textOf(sitesOf(apps)))

  test(`${proxy} itself finds nothing wrong with these`, { skip: without(proxy) || rareOnly }, () => {
    for (const [title, apps] of Object.entries(STATES)) {
      assert.equal(complaintsOf(proxy, textOf(sitesOf(apps))), '', title)
    }
  })
}

test('an app that a proxy cannot reach is refused', () => {
  const named = (addresses: string[]) => () => sitesOf([{ addresses }])
  assert.throws(named([]), /proxy: expected an address of HTTP, .* received none/)
  const refused = ['udp://localhost:53', 'tcp://localhost:25', 'unix:@shop', 'http://localhost:0', 'http://shop:3000',
    'http://localhost:3000/;', 'http://localhost:3000\n', 'unix:/run/a;b', 'unix:/run/a\nb', 'unix:/run/a}',
    'unix:/run/{a', 'unix:/run/a"', 'unix:/run/a\\', 'unix:/run/$a', 'unix:']
  for (const address of refused)
    assert.throws(named([address]), (error: Error) => error.message.endsWith(`received ${JSON.stringify(address)}`))
})

test('proxy says what is wrong with its words, and prints the same as JSON', async (t) => {
  const { says } = await openDeck(t)
  const refused = ['', 'a;b', 'shop.example.com}', '-a.com', 'a..b', '10.0.0.5', '*.example.com', 'a_b.com',
    `${'a'.repeat(64)}.com`]
  await says(`
    $ proxy
    !! proxy: expected nginx or caddy, received none
    $ proxy apache
    !! proxy: expected nginx or caddy, received "apache"
    $ proxy nginx caddy
    !! proxy: expected nginx or caddy once, received nginx and caddy
    ${
    refused.map((name) =>
      `$ proxy nginx '--domain=${name}'\n    !! --domain: expected a host name such as example.com, received "${name}"`
    ).join('\n    ')
  }
    $ proxy caddy --domain Shop.example.com
    …
    Shop.example.com {
      reverse_proxy "127.0.0.1:3000" {
    …
    $ proxy caddy --json
    {
      "proxy": "caddy",
    …
      "configuration": "# For Caddy…
    }`)
})
