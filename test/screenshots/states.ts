import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { startDeck, type TestOwner as Owner } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { openFreshConnections } from '../support/load.ts'
import { present } from '../support/present.ts'
import { createReleases } from '../support/releases.ts'
import { lacksSmallDisk, smallDisk } from '../support/small-disk.ts'
import { openShop } from './shop.ts'
import type { DeckClient } from '../support/deck-client.ts'
import type { Scene } from './camera.ts'

/** How a deck can be. Where a real one is brought there within seconds, it is one. */

const WORKERS = 4
const QUICK = ['--drain-idle-grace-ms', '100']
const LOOPING = ['--restart-min-delay-ms', '1000', '--restart-intensity-restarts', '2']

export const STATES: readonly { name: string, make: (owner: Owner) => Promise<Scene>, skip?: string | false,
  hasStillPages?: boolean }[] = Object.freeze([{ name: 'healthy', make: openShop, hasStillPages: true }, {
    name: 'deploying',
    make: deploying
  }, { name: 'held', make: held }, { name: 'failed', make: failed }, { name: 'guarded', make: guarded }, {
    name: 'crash-looping',
    make: crashLooping
  }, { name: 'nobody-serves', make: nobodyServes }, { name: 'master-lost', make: masterLost }, { name: 'offline',
    make: offline }, { name: 'full-disk', make: fullDisk, skip: lacksSmallDisk }, { name: 'empty', make: empty }])

/** Two slots are replaced, and the third worker does not come. */
async function deploying (owner: Owner) {
  const { deck, release } = await busyDeck(owner)
  await release(shop({ atLoad: 'if (slot > 2) await new Promise(() => setInterval(() => {}, 60_000))' }))
  await deck.begin({ kind: 'deploy', note: 'faster totals', strategy: { limits: { readyTimeoutMs: 600_000 } } })
  await deck.untilStatus(({ rollout, workers }) => rollout?.progress.replaced === 2 && workers.length === WORKERS + 1,
    'half of the deploy')
  return sceneOf(deck)
}

async function held (owner: Owner) {
  const { deck, release } = await busyDeck(owner)
  await release(shop({ atLoad: 'if (slot === 3) throw new Error("connect ECONNREFUSED 10.0.0.7:5432")' }))
  await deck.begin({ kind: 'deploy', note: 'new database', strategy: { onFailure: 'hold' } })
  await deck.untilStatus(({ rollout }) => rollout?.state === 'held', 'the deploy that waits')
  return sceneOf(deck)
}

async function failed (owner: Owner) {
  const { deck, release } = await busyDeck(owner)
  await release(shop({ atLoad: 'throw new SyntaxError("Unexpected token \'}\' in settings.json")' }))
  await deck.rollout({ kind: 'deploy', note: 'settings by file' })
  await deck.until({ ready: WORKERS })
  return sceneOf(deck)
}

/** A deploy had succeeded, and what it brought then looped in crashes. */
async function guarded (owner: Owner) {
  const fault = path.join(tempFolder(), 'fault')
  const { deck, release } = await busyDeck(owner, { flags: LOOPING })
  await release(shop({ atLoad: diesBy(fault, 'slot > 0') }))
  await deck.rollout({ kind: 'deploy', note: 'faster totals' })
  await writeFile(fault, '')
  await deck.untilEvent(({ type, actor }) => type === 'rollout.succeeded' && actor === 'guard', 'the rollback')
  await deck.until({ ready: WORKERS })
  return sceneOf(deck)
}

async function crashLooping (owner: Owner) {
  const fault = path.join(tempFolder(), 'fault')
  const { deck } = await busyDeck(owner, { flags: LOOPING, source: shop({ atLoad: diesBy(fault, 'slot === 3') }) })
  await writeFile(fault, '')
  await deck.untilEvent(({ type }) => type === 'worker.crash-looping', 'the loop')
  return sceneOf(deck)
}

async function nobodyServes (owner: Owner) {
  const fault = path.join(tempFolder(), 'fault')
  const { deck } = await busyDeck(owner, { flags: LOOPING,
    source: shop({
      atLoad: `if (existsSync(${JSON.stringify(fault)})) throw new Error('connect ECONNREFUSED 10.0.0.7:5432')`
    }) })
  await writeFile(fault, '')
  for (const { pid } of (await deck.status()).workers) process.kill(present(pid), 'SIGKILL')
  await deck.untilStatus(
    ({ readyWorkers, workers }) => readyWorkers === 0 && workers.every(({ crashLooping }) => crashLooping),
    'loops in every slot'
  )
  return sceneOf(deck)
}

async function masterLost (owner: Owner) {
  const { entry } = await createReleases('hello.js')
  const deck = await startDeck(owner, entry, { workers: WORKERS })
  await deck.until({ ready: WORKERS })
  await deck.loseMaster()
  await deck.until({ ready: WORKERS })
  return sceneOf(deck)
}

async function offline (owner: Owner) {
  const { close, ...scene } = await openShop(owner)
  return { ...scene, leave: close }
}

async function fullDisk (owner: Owner) {
  const disk = smallDisk(owner)
  const deck = await startDeck(owner, 'hello.js', { workers: WORKERS, dataDir: path.join(disk.folder, 'data') })
  const { workers: [{ pid }] } = await deck.until({ ready: WORKERS })
  disk.fill()
  process.kill(pid, 'SIGKILL')
  await deck.untilEvent(({ type }) => type === 'history.degraded', 'the news of the full disk')
  await deck.until({ ready: WORKERS })
  return sceneOf(deck)
}

async function empty (owner: Owner) {
  const deck = await startDeckHere(owner, 'hello.js', { workers: 1 })
  await deck.until({ ready: 1 })
  return sceneOf(deck)
}

/** A deck of a shop that is asked some times a second. */
async function busyDeck (owner: Owner, { flags = [], source = shop() }: { flags?: string[], source?: string } = {}) {
  const releases = await createReleases('hello.js')
  await releases.add('v1', source)
  const deck = await startDeckHere(owner, releases.entry, { workers: WORKERS, flags: [...QUICK, ...flags] })
  await deck.until({ ready: WORKERS })
  openFreshConnections(owner, await deck.appUrl(), { perSecond: 20 })
  return { deck, release: (next: string) => releases.add('v2', next) }
}

function shop ({ atLoad = '' }: { atLoad?: string } = {}): string {
  return `import { existsSync } from 'node:fs'
import http from 'node:http'

const slot = Number(process.env.CLUSTERDECK_SLOT)
${atLoad}
http.createServer((request, response) => {
  console.log(\`\${request.method} \${request.url} 200\`)
  response.end('ok')
}).listen(0)
`
}

/** `fault`: a file; `who`: an expression */
function diesBy (fault: string, who: string): string {
  return `function totalOf (cart) { return cart.items.length }
if (${who}) setInterval(() => { if (existsSync(${JSON.stringify(fault)})) totalOf({}) }, 20)`
}

function sceneOf (deck: DeckClient): Scene {
  return { url: deck.adminUrl, signInLink: deck.signInLink,
    ask: async <T>(where: string) => (await deck.api<T>(where)).body as T }
}
