import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { rareOnly, rareTest } from '../support/rare.ts'

const run = promisify(execFile)
const THROWS = path.resolve(import.meta.dirname, '../fixtures/throws-in-one-app.js')
const REASON = 'its part of this host failed, and is made anew; its workers serve on: '

/** What throws-in-one-app.js says. */
type Seen = { wasAnswered: boolean, serves: boolean, isSameUrl: boolean, isOtherAsItWas: boolean, failed: string[][],
  reason: string, lost: ReturnType<typeof lostBy>[], said: string[],
  exits: { cause: string, signal: string | null, code: number | null }[], left: number[], told: string[],
  states: string[], run: { told: [type: string, cause: string | null][], state: string, code: number, output: string } }

async function throwInOne (what: 'once' | 'again' | 'kill' | 'stop' | 'stop-broken',
  dispatch: 'shared' | 'sticky' = 'shared')
{
  // In a process of its own: the runner of the tests takes whatever nobody catches for its own.
  const { stdout } = await run(process.execPath, [THROWS, what, dispatch], { timeout: 100_000 })
  const seen: Seen = JSON.parse(stdout)
  assert.equal(seen.isOtherAsItWas, true)
  assert.deepEqual(seen.failed[1], [], 'requests of the other app')
  assert.equal(seen.reason, `${REASON}first`)
  assert.match(seen.said[0], /^the part of the host for an app failed: Error: first\n +at .*throws-in-one-app/)
  return seen
}

function lostBy (error: string) {
  return { message: `the host's part for this app failed, and is made anew; the workers serve on: ${error}`,
    cause: 'master-lost', hasStack: true }
}

describe('an exception in the part of a host for one app', { concurrency: 2 }, () => {
  for (const dispatch of ['shared', 'sticky'] as const) {
    test(
      `has that part made anew: its workers serve on meanwhile, and are replaced without a lost request; the other app does not notice (${dispatch})`,
      {
        skip: dispatch === 'sticky' && (rareOnly || (process.platform !== 'linux' && 'the kernel has no such groups'))
      },
      async () => {
        const { wasAnswered, serves, isSameUrl, failed, lost, exits, said } = await throwInOne('once', dispatch)
        assert.deepEqual({ wasAnswered, serves, isSameUrl, failed: failed[0] }, { wasAnswered: true, serves: true,
          isSameUrl: true, failed: [] })
        assert.deepEqual(lost, [lostBy('first')])
        assert.deepEqual(exits, Array(2).fill({ cause: 'master-lost', signal: null, code: 0 }))
        assert.equal(said.length, 1, said.join('\n'))
      }
    )
  }

  rareTest(
    'may come again, and each time its workers are taken over, and a command that runs beside them runs on and is followed to its end',
    async () => {
      const { failed, lost, exits, run } = await throwInOne('again')
      assert.deepEqual(run.told, [['job.started', null], ['job.continued', 'master-lost'], ['job.continued',
        'master-lost'], ['job.command-failed', null]])
      assert.deepEqual([run.state, run.code, run.output.split('\n').filter(Boolean).sort()], ['failed', 3, ['one',
        'oops', 'two']])
      assert.deepEqual([failed[0], lost], [[], ['first', 'second'].map(lostBy)])
      assert.ok(exits.length >= 2 && exits.every(({ cause, code }) => cause === 'master-lost' && code === 0),
        JSON.stringify(exits))
    }
  )

  rareTest('leaves nobody unseen: how a worker ends meanwhile is on record', async () => {
    const { exits } = await throwInOne('kill')
    assert.deepEqual(exits.map(({ signal }) => signal).sort(), [null, 'SIGKILL'].sort())
  })

  rareTest('keeps nobody from stopping the app: that ends the workers which it has left', async () => {
    const { left, told } = await throwInOne('stop')
    assert.deepEqual(left, [])
    assert.ok(told.includes('app.stopped faulty'))
  })

  test('is not made good after the app was stopped: one that cannot be opened again stays stopped, also once it could be', async () => {
    const { states } = await throwInOne('stop-broken')
    assert.deepEqual(states, ['failed', 'stopped'])
  })
})
