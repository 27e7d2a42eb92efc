import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { FIXTURES, startDeck } from '../support/deck.ts'
import { findProcesses, isListening } from '../support/leftovers.ts'
import { openFreshConnections } from '../support/load.ts'
import { withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const SERVER = `${process.execPath} ${path.join(FIXTURES, 'finishes-by-signal.js')}`

/** Programs that are no Node program to the deck, as a shell starts them, and masters that follow one another. */
describe('programs and their masters', { skip: withoutOtherPrograms }, () => {
  test('masters are killed while programs serve and while they boot, and one hands over to the next: no fresh connection fails, and nothing is left', async (t) => {
    const { deck, url, pids, leftovers } = await startProgram(t, { env: { BOOT_MS: '300' } })
    const first = pids()
    const fresh = openFreshConnections(t, url, { perSecond: 50 })

    await deck.loseMaster()
    await deck.untilEvent('worker.forked', { pid: (pid: number) => !first.includes(pid) })
    await deck.loseMaster()
    await deck.until({ ready: 2 })
    await until(() => !pids().some((pid) => first.includes(pid)), 'the end of those that the first master has started')

    await deck.post('/upgrade')
    await deck.untilEvent('master.upgraded')
    await deck.until({ ready: 2 })

    const { total } = await fresh.checkNoneLost()
    t.diagnostic(`${total} fresh connections`)
    await until(() => pids().length === 4, 'two shells with a server each')
    const exited = await deck.history('type=worker.exited&limit=100')
    assert.deepEqual(exited.filter(({ cause }) => !['master-lost', 'upgrade'].includes(String(cause))), [])

    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
    assert.deepEqual(leftovers(), [])
  })

  rareTest('an orphan that binds nothing yet is ended by the next master, also where it does not hear the signal',
    async (t) => {
      const { deck, pids } = await startProgram(t, { env: { BOOT_MS: '600000' },
        flags: ['--stop-term-grace-ms', '200'] }, false)
      await deck.untilEvent('worker.online')
      const [first] = pids()
      await deck.loseMaster()
      await until(() => !pids().includes(first), 'its end')
    })

  rareTest(
    'told to stop twice while the master hangs, the keeper takes along all that programs have started, in whatever session',
    async (t) => {
      const { deck, pids, leftovers } = await startProgram(t, { script: `setsid ${SERVER} & wait` })
      assert.equal(pids().length, 4)
      process.kill(deck.masterPid, 'SIGSTOP')
      for (const signal of ['SIGTERM', 'SIGINT'] as const) deck.signal(signal)
      await deck.exited
      await until(() => leftovers().length === 0, 'the end of all')
    }
  )

  rareTest('without a keeper, programs serve on alone, and the next start takes them over', async (t) => {
    const { deck, url, pids, port, mark } = await startProgram(t, { flags: ['--no-keeper'] })
    const first = pids()
    deck.signal('SIGKILL')
    await deck.exited
    assert.equal((await fetch(url)).status, 200)
    const { leftovers } = await startProgram(t, { flags: ['--no-keeper'], dataDir: deck.folder, port, mark })
    await until(() => !pids().some((pid) => first.includes(pid)), 'the end of the first')
    assert.equal((await fetch(url)).status, 200)
    assert.notDeepEqual(leftovers(), [])
  })
})

/** `script`: of the shell */
async function startProgram (t: TestContext,
  { env = {}, flags = [], dataDir, port, mark = `TEST_MARK=${process.pid}-${Math.random()}`,
    script = `${SERVER} & wait` }: { env?: Record<string, string>, flags?: string[], dataDir?: string, port?: number,
      mark?: string, script?: string } = {}, isAwaited: boolean = true)
{
  const on = port ?? await freePort()
  const [name, value] = mark.split('=')
  const deck = await startDeck(t, null, { flags, dataDir, env: { ...env, PORT: String(on), [name]: value },
    args: ['sh', '-c', script] })
  if (isAwaited) await deck.until({ ready: 2 })
  const leftovers = () => findProcesses(mark)
  return {
    deck,
    port: on,
    mark,
    url: `http://127.0.0.1:${on}/`,
    leftovers: () => [...leftovers(), ...isListening(on) ? [on] : []],
    /** Those of the programs. */
    pids: () =>
      leftovers().filter(({ command }) => command.includes('finishes-by-signal') && !command.includes('cli.js')).map((
        { pid }
      ) => pid)
  }
}
