import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createSockets, type Keeper } from '../../../server/cluster/sockets.ts'
import { createAppLinks } from '../../../server/keeper/app-links.ts'
import { storedName } from '../../../server/systemd/socket-store.ts'
import { fakeHandle } from '../../support/socket-handle.ts'
import { fake } from '../../support/fake.ts'
import type { KeeperLink, ToKeeper, HeldSocket } from '../../../server/keeper/link.ts'
import type { SocketQuery } from '../../../workers/protocol.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url))
const BOTH = ['shop', 'blog']
const QUERY: SocketQuery = { address: null, port: 3000, addressType: 4, fd: undefined, flags: 0, index: 0 }
const KEY = 'app null:3000:4:undefined:0'

test('each app finds its own sockets, checkpoint and events after the death of the master, and none of another', async (t) => {
  const child = spawn(process.execPath, [fixture('keeps.js'), fixture('serves-two-apps.js')], {
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.after(() => child.kill('SIGKILL'))
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(code, 7, stderr)
  const [first, second, third, fourth] = stdout.trimEnd().split('\n').map((line) => JSON.parse(line))
  const nothing = { sockets: [], memory: null, unsaved: [] }
  assert.deepEqual(first, { run: 1, own: [], unsaved: [], found: { shop: nothing, blog: nothing } })
  const [shopPort, blogPort] = BOTH.map((name) => second.found[name].sockets[0][1])
  assert.ok(shopPort > 0 && blogPort > 0 && shopPort !== blogPort)
  const shop = { sockets: [['app 0', shopPort, { data: shopPort }], ['slot 1 0', shopPort, null]],
    memory: { of: 'shop' }, unsaved: [1] }
  const blog = { sockets: [['app 0', blogPort, { data: blogPort }], ['slot 1 0', blogPort, null]],
    memory: { of: 'blog' }, unsaved: [2] }
  const own = { own: ['admin'], unsaved: [9] }
  assert.deepEqual(second, { run: 2, ...own, found: { shop, blog } })
  // The shop has saved its events since, and dropped a socket.
  assert.deepEqual(third, { run: 3, ...own,
    found: { shop: { ...shop, sockets: shop.sockets.slice(0, 1), unsaved: [] }, blog: { ...blog, unsaved: [2, 3] } } })
  // Then the host has not known the blog any more.
  assert.deepEqual(fourth, { run: 4, ...own, found: { shop: third.found.shop, blog: nothing } })
})

test('what an app holds and drops carries its name, and nothing is said for one that has gone', () => {
  const { keeper, links } = setUp()
  const shop = links.of('shop')
  shop.hold('slot 1 x', fakeHandle(), { data: 'keys' })
  shop.hold('app x', fakeHandle())
  shop.drop('app x')
  links.of('shop').hold('port 1', fakeHandle())
  shop.hold('late', fakeHandle())
  shop.drop('slot 1 x')
  shop.send({ type: 'cancel' })
  assert.deepEqual(keeper.told, [['hold', 'of shop slot 1 x', { data: 'keys' }], ['hold', 'of shop app x', undefined], [
    'drop',
    'of shop app x'
  ], ['hold', 'of shop port 1', undefined]])
})

test('an app gets its sockets once, and those of others and of the host not at all', () => {
  const { keeper, links, handles } = setUp(['of shop app x', 'of blog app x', 'of shop slot 1 y', 'of shop-2 app x',
    'admin 127.0.0.1:9777', 'inherited 3'])
  const { held } = links.of('shop')
  assert.deepEqual([...held].map(([key, { handle }]) => [key, handle]), [['inherited 3', handles[5]], ['app x',
    handles[0]], ['slot 1 y', handles[2]]])
  assert.deepEqual([...links.of('shop').held.keys()], ['inherited 3'], 'it has closed them')
  assert.deepEqual([...keeper.held.keys()], ['admin 127.0.0.1:9777', 'inherited 3'])
})

test('an app that comes from a deck gets the sockets that it had there, and knows how that deck\'s master ended; the keeper has a copy', () => {
  const { keeper, links, handles } = setUp(['of blog app x'])
  const [own, udp] = [fakeHandle(), fakeHandle()]
  links.give('shop', new Map([['app x', { handle: own, data: { data: 'keys' } }], ['app y', { handle: udp }]]))
  assert.deepEqual(keeper.told, [['hold', 'of shop app x', { data: 'keys' }], ['hold', 'of shop app y', undefined]])
  const before = { pid: 7, code: null, signal: null }
  keeper.reaps = false
  const shop = links.of('shop', { before })
  assert.deepEqual([...shop.held], [['app x', { handle: own, data: { data: 'keys' } }], ['app y', { handle: udp,
    data: undefined }]])
  assert.deepEqual([shop.predecessor, shop.reaps, links.of('blog').predecessor, links.of('blog').reaps], [before, true,
    null, false])
  links.forget('shop')
  assert.deepEqual(keeper.told.slice(2, 4), [['drop', 'of shop app x'], ['drop', 'of shop app y']])
  assert.deepEqual(handles.map(({ isClosed }) => isClosed), [false])
})

test('a socket that the service manager has kept is for the app whose record names it, with its address; others are closed, and told', () => {
  const keys = ['app x', 'app y', 'app z'].map((key) => ({ key, address: '[::]:3000' }))
  const names = keys.map(({ key }) => storedName(`of shop ${key}`))
  const ofMail = storedName('of mail app x')
  const returned = (name: string, port: number) => ({ fd: 3, name, host: '::', port })
  const { keeper, links, handles } = setUp(['returned 3', 'returned 4', 'returned 5', 'inherited 3'], {
    data: { 'returned 3': returned(names[0], 3000), 'returned 4': returned(names[1], 3001),
      'returned 5': returned(ofMail, 3000) }
  })
  assert.deepEqual(links.giveReturned([{ id: 'shop', stored: keys }]), [`[::]:3001 ("${names[1]}")`,
    `[::]:3000 ("${ofMail}")`])
  assert.deepEqual(keeper.told, [['hold', 'of shop app x', { path: undefined }], ['drop', 'returned 3'], ['drop',
    'returned 4'], ['drop', 'returned 5']])
  assert.deepEqual(handles.map(({ isClosed }) => isClosed), [false, true, true, false])
  assert.deepEqual([...keeper.held.keys()], ['inherited 3'])
  links.closeUnserved('shop', () => true)
  assert.deepEqual([handles[0].isClosed, [...links.of('shop').held.keys()]], [false, ['inherited 3', 'app x']])
})

test('sockets of an app that does not run are closed, also of one that has failed before it took them, unless workers serve it', () => {
  const { links, handles } = setUp(['of shop app x', 'of blog app x', 'of mail app x'])
  links.of('blog')
  links.close('blog')
  for (const id of ['shop', 'blog', 'mail']) links.closeUnserved(id, () => id === 'mail')
  assert.deepEqual(handles.map(({ isClosed }) => isClosed), [true, true, false])
})

test('an app that is forgotten leaves nothing with the keeper, whether it was open or not', () => {
  const { keeper, links, handles } = setUp(['of shop app x', 'of blog app x'], { contents: { blog: 'a checkpoint' } })
  const shop = links.of('shop')
  shop.hold('slot 1 x', fakeHandle())
  keeper.told.length = 0
  links.forget('shop')
  links.forget('blog')
  assert.deepEqual(keeper.told, [['drop', 'of shop app x'], ['drop', 'of shop slot 1 x'], ['remember', 'shop', null], [
    'saved',
    'shop'
  ], ['drop', 'of blog app x'], ['remember', 'blog', null], ['saved', 'blog']])
  assert.deepEqual(handles.map(({ isClosed }) => isClosed), [false, true], 'an open app closes its own')
  assert.deepEqual([...links.of('blog').held.keys()], [])
})

test('what belongs to apps that nobody knows any more is dropped', () => {
  const { keeper, links } = setUp(['of shop app x', 'of blog app x', 'admin 127.0.0.1:9777'], {
    contents: { shop: 'a', old: 'b' }
  })
  links.dropUnknown(['shop', 'new'])
  assert.deepEqual(keeper.told, [['drop', 'of blog app x'], ['remember', 'blog', null], ['saved', 'blog'], ['remember',
    'old', null], ['saved', 'old']])
  assert.deepEqual([...links.of('shop').held.keys()], ['app x'])
})

test('what the keeper says of orphans and of its end reaches every open app, and one that has gone no more', async () => {
  const { keeper, links } = setUp()
  const heard: string[] = []
  for (const name of [...BOTH, 'gone']) {
    const link = links.of(name)
    link.on('reaped', ({ pid }) => heard.push(`${name} ${pid}`))
    link.onLost(() => heard.push(`${name} lost`))
  }
  const spared = links.of('spared')
  const onLost = () => heard.push('spared lost')
  spared.onLost(onLost)
  spared.offLost(onLost)
  links.close('gone')
  keeper.say({ type: 'reaped', pid: 7 })
  keeper.lose()
  assert.deepEqual(heard.splice(0), ['shop 7', 'blog 7', 'shop lost', 'blog lost'])
  links.of('late').onLost(() => heard.push('late lost'))
  await Promise.resolve()
  assert.deepEqual(heard, ['late lost'])
})

test('how long a master may be silent is not for an app to say', () => {
  const { keeper, links } = setUp()
  links.of('shop').send({ type: 'watch', hang: { afterMs: 1 } })
  assert.deepEqual(keeper.told, [])
})

test('of an upgrade, an app hears what the other master says of its own workers, and all hear why it fails', () => {
  const { keeper, links } = setUp()
  const heard: unknown[] = []
  for (const name of BOTH) {
    const link = links.of(name)
    link.on('relay', (message) => heard.push([name, message.failing ?? message.event.type]))
    link.on('upgrade-failed', ({ reason }) => heard.push([name, reason]))
  }
  keeper.say({ type: 'relay', app: 'blog', event: { type: 'worker.forked' }, workers: [] })
  keeper.say({ type: 'relay', failing: 'not today' })
  keeper.say({ type: 'upgrade-failed', reason: 'SIGKILL' })
  assert.deepEqual(heard, [['blog', 'worker.forked'], ['shop', 'not today'], ['blog', 'not today'], ['shop', 'SIGKILL'],
    ['blog', 'SIGKILL']])
})

test('an app that calls the upgrade off does so for all, who hear why and by whom; what only the host says is not passed on', () => {
  const { keeper, links } = setUp()
  const heard: unknown[] = []
  links.of('blog').on('relay', ({ failing }) => heard.push(failing))
  const shop = links.of('shop')
  shop.send({ type: 'watch', hang: null })
  shop.send({ type: 'cancel', reason: 'the next master was not ready within a minute' })
  assert.deepEqual([keeper.told, heard], [[['send', { type: 'cancel' }]], [
    'shop: the next master was not ready within a minute'
  ]])
})

test('the next master serves once all do that take part, whichever is the last; what they tell carries their names', () => {
  for (const isAwaitedFirst of [true, false]) {
    const { keeper, links } = setUp()
    const [shop, blog] = BOTH.map((name) => links.of(name))
    if (isAwaitedFirst) links.awaitServing(BOTH)
    shop.send({ type: 'relay', event: { type: 'worker.ready' }, workers: [] })
    shop.send({ type: 'serving' })
    assert.deepEqual(keeper.told.splice(0), [['send', { type: 'relay', event: { type: 'worker.ready' }, workers: [],
      app: 'shop' }]])
    blog.send({ type: 'serving' })
    if (!isAwaitedFirst) {
      assert.deepEqual(keeper.told, [])
      links.awaitServing(BOTH)
    }
    blog.send({ type: 'serving' })
    assert.deepEqual(keeper.told, [['send', { type: 'serving' }]])
  }
  const { keeper, links } = setUp()
  links.awaitServing([])
  assert.deepEqual(keeper.told, [['send', { type: 'serving' }]], 'where none takes part, it is the host alone')
})

test('an app is opened beside another master until that has gone, and then as in any other', () => {
  const { keeper, links } = setUp([], { role: 'next' })
  const shop = links.of('shop')
  const heard: unknown[] = []
  shop.on('take-over', (message) => heard.push(message.predecessor, links.of('blog').role))
  assert.equal(shop.role, 'next')
  const predecessor = { pid: 7, code: null, signal: 'SIGKILL' }
  keeper.say({ type: 'take-over', predecessor })
  assert.deepEqual(heard, [predecessor, 'current'])
  assert.deepEqual([links.of('blog').role, links.of('blog').predecessor], ['current', predecessor])
})

test('what the other master has held since this one began is there for an app that is opened afterwards', () => {
  const { keeper, links, handles } = setUp(['of blog app x'], { role: 'next' })
  links.of('shop')
  const late = ['of blog app x', 'of blog app y', 'of shop app z', 'of gone app x'].map((key) => {
    const handle = fakeHandle()
    keeper.held.set(key, { handle })
    return handle
  })
  keeper.say({ type: 'take-over', predecessor: null })
  links.dropUnknown(['shop', 'blog'])
  assert.deepEqual([...links.of('blog').held].map(([key, { handle }]) => [key, handle]), [['app x', late[0]], ['app y',
    late[1]]])
  assert.deepEqual([handles[0], ...late].map(({ isClosed }) => isClosed), [true, false, false, false, true])
  assert.deepEqual(keeper.told.filter(([what]) => what === 'drop'), [['drop', 'of gone app x']])
  const shop = links.of('shop')
  assert.deepEqual([...shop.held.keys()], ['app z'])
})

test('an app that comes to nothing in the next master says so with its name', () => {
  const { keeper, links } = setUp()
  const shop = links.of('shop')
  assert.equal(shop.failure, null)
  shop.failUpgrade('worker 7 ended')
  assert.deepEqual([keeper.told, links.of('blog').failure], [[['failed', 'shop: worker 7 ended']],
    'shop: worker 7 ended'])
})

test('an app that throws at what it hears keeps it from no other', () => {
  const thrown: [string, string][] = []
  const { keeper, links } = setUp([], { onFault: (error, name) => thrown.push([name, String(error)]) })
  const heard: number[] = []
  links.of('shop').on('reaped', () => {
    throw new Error('not today')
  })
  links.of('blog').on('reaped', ({ pid }) => heard.push(pid))
  keeper.say({ type: 'reaped', pid: 7 })
  assert.deepEqual([heard, thrown], [[7], [['shop', 'Error: not today']]])
})

test('an app whose part has failed and is made anew has the sockets that it had, and hears why; one that has ended closes them itself', () => {
  const { links } = setUp()
  const [socket, other] = [fakeHandle(), fakeHandle()]
  const first = links.of('shop')
  first.hold('app a', socket)
  first.hold('app b', other)
  first.drop('app b')
  links.close('shop', { keepsSockets: true })
  const fault = { message: 'not today', stack: null }
  for (let time = 0; time < 2; time++) {
    const again = links.of('shop', { fault, exits: [{ pid: 7, code: 0, signal: null }] })
    assert.deepEqual([...again.held].map(([key, { handle }]) => [key, handle]), [['app a', socket]])
    assert.deepEqual([again.predecessor, again.exits.at(-1)?.pid, again.reaps], [{ pid: process.pid, code: null,
      signal: null, fault }, 7, true])
    links.close('shop', { keepsSockets: true })
  }
  links.of('shop')
  links.close('shop')
  assert.equal(links.of('shop').held.size, 0)
})

test('an app that comes and goes a thousand times leaves no listener', () => {
  const { keeper, links } = setUp()
  const before = keeper.listeners()
  for (let n = 0; n < 1000; n++) {
    const link = links.of('shop')
    link.on('reaped', () => {})
    link.onLost(() => {})
    links.close('shop')
  }
  assert.ok(before > 0)
  assert.equal(keeper.listeners(), before)
})

test('of a socket of the service manager the first app that asks gets it, and it outlives that app', () => {
  const { links, handles: [inherited] } = setUp(['inherited 3'])
  const unused: string[] = []
  const [shop, blog] = BOTH.map((name) => socketsOf(links.of(name), (names) => unused.push(...names)))
  assert.equal(shop.request(1, { query: QUERY }).handle, inherited)
  assert.equal(blog.request(1, { query: QUERY }).errno, -constants.errno.EADDRINUSE)
  assert.match(blog.explain(QUERY, -constants.errno.EADDRINUSE).message,
    /^port 3000 is in use \(EADDRINUSE\); the service manager has \[::\]:3000 \("web"\), and another app of this host listens there$/)
  blog.expireUnused()
  assert.deepEqual(unused, [], 'it may be another app\'s')
  shop.close()
  blog.leave()
  assert.equal(inherited.isClosed, false)
  links.close('shop')
  assert.equal(socketsOf(links.of('blog')).request(1, { query: QUERY }).handle, inherited)
})

test('a socket of the service manager stays with the app that had it under the master before', () => {
  const { links, handles: [inherited, copy] } = setUp(['inherited 3', `of blog ${KEY}`], {
    data: { [`of blog ${KEY}`]: { inherited: 3 } }
  })
  const [shop, blog] = BOTH.map((name) => socketsOf(links.of(name)))
  assert.equal(shop.request(1, { query: QUERY }).errno, -constants.errno.EADDRINUSE)
  assert.equal(blog.request(1, { query: QUERY }).handle, copy)
  blog.close()
  assert.deepEqual([inherited.isClosed, copy.isClosed], [false, true])
  links.close('blog')
  assert.equal(links.of('shop').claim?.(3), true)
})

/** The sockets of an app, for which nothing can be bound. */
function socketsOf (keeper: Keeper, onUnused?: (names: string[]) => void) {
  return createSockets({ keeper, onBindError: () => false, onUnused,
    bind: () => ({ errno: -constants.errno.EADDRINUSE }) })
}

/** `contents`: the checkpoints that the keeper has, by app; `data`: by key; `more`: of the line to the keeper */
function setUp (keys: string[] = [],
  { contents = {}, data = {}, onFault, ...more }: Partial<KeeperLink> & Parameters<typeof createAppLinks>[1] & {
    contents?: Record<string, unknown>,
    data?: Record<string, HeldSocket['data']>
  } = {})
{
  const handles = keys.map(() => fakeHandle())
  const told: unknown[][] = []
  const listeners: [string, (message: never) => void][] = []
  const onLost: (() => void)[] = []
  const dataOf = (key: string) => key === 'inherited 3' ? { fd: 3, name: 'web', host: '::', port: 3000 } : data[key]
  const keeper = { isKept: true, role: 'current' as const, predecessor: null, exits: [], reaps: true,
    held: new Map<string, HeldSocket>(keys.map((key, index) => [key, { handle: handles[index], data: dataOf(key) }])),
    told, failure: null as string | null, failUpgrade (reason: string) {
    keeper.failure = reason
    told.push(['failed', reason])
  }, ...more, hold: (key: string, _: unknown, given: unknown) => void told.push(['hold', key, given]),
    drop: (key: string) => told.push(['drop', key]), send: (message: ToKeeper) => told.push(['send', message]),
    memoryOf: (app: string) => ({ read: () => contents[app] ?? null,
      write: (content: unknown) => told.push(['remember', app, content]) > 0 }),
    spareOf: (app: string) => ({ events: [], keep () {}, clear: () => told.push(['saved', app]) }),
    rememberedApps: () => Object.keys(contents),
    on: (type: string, handler: (message: never) => void) => listeners.push([type, handler]),
    onLost: (handler: () => void) => onLost.push(handler),
    failNext: (failing: string) => keeper.say({ type: 'relay', failing }),
    say (message: { type: string, [name: string]: unknown }) {
      for (const [type, handler] of listeners) if (type === message.type) handler(message as never)
    }, lose: () => onLost.forEach((handler) => handler()), listeners: () => listeners.length + onLost.length }
  return { keeper, links: createAppLinks(fake(keeper), { onFault }), handles }
}
