import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { openUser } from '../../support/user.js'
import { tempFolder } from '../../support/folder.js'
import { createPm2, openPage } from '../compare/peers.js'
import { deckConfig, pm2Config } from './apps.js'

/**
 * Apps that run.
 * @typedef {object} Running
 * @property {() => number[]} managers  pids of those that serve nobody
 * @property {(name: string) => Promise<unknown>} add  starts one more by its command; resolves when that has ended
 * @property {((name: string) => Promise<unknown>) | null} addByApi  resolves when that is answered
 * @property {(names: string[]) => Promise<unknown>} stop
 * @property {(() => Promise<() => void>) | null} open  opens its page, and returns what closes it
 * @property {(() => Promise<{ firstMs: number, allMs: number }>) | null} lose  kills a master; the time until the next one answers for one of its apps, and for all
 *
 * @typedef {{ title: string, start: (t: import('../../support/deck.js').TestOwner, apps: import('./apps.js').Apps, late: import('./apps.js').Apps) => Promise<Running> }} Way
 */

/** @type {Record<string, Way>} by the name of a flag */
export const WAYS = Object.freeze({
  host: { title: 'clusterdeck, one host', start: startHost },
  decks: { title: 'clusterdeck, a deck each', start: startDecks },
  pm2: { title: 'PM2', start: startPm2 }
})

/** @type {Way['start']} */
async function startHost (t, apps, late) {
  const user = openUser(t)
  const cwd = user.folder('apps', deckConfig({ ...apps, ...late }))
  await user.startHost()
  // One that cannot be started is refused.
  for (const name of Object.keys(apps)) await user.add(cwd, name).catch((error) => { if (!apps[name].isWrong) throw error })
  return {
    ...measured(user),
    async add (name) {
      const { code, stderr } = await user.run(cwd, 'up', '--detach', '--no-wait', name)
      if (code !== 0) throw new Error(stderr)
    },
    addByApi: (name) => user.add(cwd, name),
    stop: (names) => Promise.all(names.map((name) => user.askHost(`/apps/${name}/stop`, { method: 'POST' }))),
    lose: () => loseMaster(user, user.decks())
  }
}

/** @type {Way['start']} */
async function startDecks (t, apps, late) {
  const user = openUser(t)
  const cwd = user.folder('apps', deckConfig({ ...apps, ...late }))
  const add = async (/** @type {string} */ name) => { user.start(cwd, ['start', '--app', name]) }
  for (const name of Object.keys(apps)) await add(name)
  return {
    ...measured(user),
    add,
    addByApi: null,
    stop: (names) => Promise.all(names.map((name) => user.ask(user.deck(name), '/stop', { method: 'POST' }))),
    lose: () => loseMaster(user, user.decks().slice(0, 1))
  }
}

/** @param {import('../../support/user.js').User} user @returns {Pick<Running, 'managers' | 'open'>} */
function measured (user) {
  return {
    managers: user.managers,
    async open () {
      const { url, token } = await user.page(user.decks()[0])
      return await openPage(url, token)
    }
  }
}

/** @param {import('../../support/user.js').User} user @param {import('../../support/user.js').RunningDeck[]} decks of one master */
async function loseMaster (user, decks) {
  const killedAt = performance.now()
  let firstMs = 0
  process.kill(decks[0].master.pid, 'SIGKILL')
  await user.untilNextMaster(decks, () => { firstMs = performance.now() - killedAt })
  return { firstMs, allMs: performance.now() - killedAt }
}

/** @type {Way['start']} */
async function startPm2 (t, apps, late) {
  const cwd = tempFolder()
  const write = (/** @type {string} */ name, /** @type {import('./apps.js').Apps} */ some) => {
    const file = path.join(cwd, `${name}.config.json`)
    writeFileSync(file, JSON.stringify(pm2Config(some, cwd)))
    return file
  }
  const { pm2, daemon } = createPm2(t, { PORT: undefined, NODE_EXTRA_CA_CERTS: undefined })
  await pm2('start', write('apps', apps))
  return {
    managers: () => [daemon()],
    add: (name) => pm2('start', write(name, { [name]: late[name] })),
    addByApi: null,
    stop: (names) => pm2('stop', ...names),
    open: null,
    lose: null
  }
}
