import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { openUser, type User } from '../../support/user.ts'
import { tempFolder } from '../../support/folder.ts'
import { createPm2, openPage } from '../compare/peers.ts'
import { deckConfig, pm2Config, type Apps } from './apps.ts'
import type { TestOwner } from '../../support/deck.ts'
import type { RunningDeck } from '../../../server/system/running-decks.ts'

/** Apps that run. */
export type Running = {
  /** pids of those that serve nobody */
  managers: () => number[],
  /** starts one more by its command; resolves when that has ended */
  add: (name: string) => Promise<unknown>,
  /** resolves when that is answered */
  addByApi: ((name: string) => Promise<unknown>) | null,
  stop: (names: string[]) => Promise<unknown>,
  /** opens its page, and returns what closes it */
  open: (() => Promise<() => void>) | null,
  /** kills a master; the time until the next one answers for one of its apps, and for all */
  lose: (() => Promise<{ firstMs: number, allMs: number }>) | null
}
type Way = { title: string, start: (t: TestOwner, apps: Apps, late: Apps) => Promise<Running> }

/** by the name of a flag */
export const WAYS: Record<string, Way> = Object.freeze({ host: { title: 'clusterdeck, one host', start: startHost },
  decks: { title: 'clusterdeck, a deck each', start: startDecks }, pm2: { title: 'PM2', start: startPm2 } })

async function startHost (t: Parameters<Way['start']>[0], apps: Parameters<Way['start']>[1],
  late: Parameters<Way['start']>[2]): ReturnType<Way['start']>
{
  const user = openUser(t)
  const cwd = user.folder('apps', deckConfig({ ...apps, ...late }))
  await user.startHost()
  // One that cannot be started is refused.
  for (const name of Object.keys(apps))
    await user.add(cwd, name).catch((error) => {
      if (!apps[name].isWrong) throw error
    })
  return { ...measured(user), async add (name) {
    const { code, stderr } = await user.run(cwd, 'up', '--detach', '--no-wait', name)
    if (code !== 0) throw new Error(stderr)
  }, addByApi: (name) => user.add(cwd, name),
    stop: (names) => Promise.all(names.map((name) => user.askHost(`/apps/${name}/stop`, { method: 'POST' }))),
    lose: () => loseMaster(user, user.decks()) }
}

async function startDecks (t: Parameters<Way['start']>[0], apps: Parameters<Way['start']>[1],
  late: Parameters<Way['start']>[2]): ReturnType<Way['start']>
{
  const user = openUser(t)
  const cwd = user.folder('apps', deckConfig({ ...apps, ...late }))
  const add = async (name: string) => {
    user.start(cwd, ['start', '--app', name])
  }
  for (const name of Object.keys(apps)) await add(name)
  return { ...measured(user), add, addByApi: null,
    stop: (names) => Promise.all(names.map((name) => user.ask(user.deck(name), '/stop', { method: 'POST' }))),
    lose: () => loseMaster(user, user.decks().slice(0, 1)) }
}

function measured (user: User): Pick<Running, 'managers' | 'open'> {
  return { managers: user.managers, async open () {
    const { url, token } = await user.page(user.decks()[0])
    return await openPage(url, token)
  } }
}

/** `decks`: of one master */
async function loseMaster (user: User, decks: RunningDeck[]) {
  const killedAt = performance.now()
  let firstMs = 0
  process.kill(decks[0].master.pid, 'SIGKILL')
  await user.untilNextMaster(decks, () => {
    firstMs = performance.now() - killedAt
  })
  return { firstMs, allMs: performance.now() - killedAt }
}

async function startPm2 (t: Parameters<Way['start']>[0], apps: Parameters<Way['start']>[1],
  late: Parameters<Way['start']>[2]): ReturnType<Way['start']>
{
  const cwd = tempFolder()
  const write = (name: string, some: Apps) => {
    const file = path.join(cwd, `${name}.config.json`)
    writeFileSync(file, JSON.stringify(pm2Config(some, cwd)))
    return file
  }
  const { pm2, kill, daemon } = createPm2({})
  t.after(kill)
  await pm2('start', write('apps', apps))
  return { managers: () => [daemon()], add: (name) => pm2('start', write(name, { [name]: late[name] })), addByApi: null,
    stop: (names) => pm2('stop', ...names), open: null, lose: null }
}
