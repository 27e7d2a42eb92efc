import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { createAppScopes } from '../../../server/host/app-scopes.ts'
import { tempFolder } from '../../support/folder.ts'

const run = promisify(execFile)
const THROWS = path.resolve(import.meta.dirname, '../../fixtures/throws-everywhere.js')
/**
 * Where Node does not know by itself whose part runs. None of it is in the part of an app, or what is there binds it.
 */
const NOT_ITS_APP: Record<string, string> = {
  // The resource of an accepted connection is made before anybody is told of it.
  'net data': 'nobody',
  'net close': 'nobody',
  'thread exit': 'nobody',
  // The first listener of all opens the handle.
  'a signal': 'late: a signal, bound',
  'an event of nobody': 'nobody',
  'an event of another app': 'the other app',
  // A rule of the linter keeps it out.
  ...Number(process.versions.node.split('.')[0]) < 24 && { queueMicrotask: 'nobody' }
}

function open (t: TestContext) {
  const faults: unknown[] = []
  const scopes = createAppScopes({ onLateFault: (error, app) => faults.push(['late', app, error]) })
  t.after(() => scopes.close())
  const scope = scopes.open('shop', { onFault: (error) => faults.push([scopes.current(), error]) })
  return { scopes, scope, faults }
}

describe('whose part of the process runs', () => {
  test('is known wherever something is thrown that nobody catches, but for what is bound by hand', async () => {
    const { stdout } = await run(process.execPath, [THROWS, tempFolder()], { timeout: 60_000 })
    const taken = JSON.parse(stdout)
    const expected = Object.fromEntries(Object.keys(taken).map((name) => [name, NOT_ITS_APP[name] ?? 'its app']))
    assert.ok(Object.keys(taken).length > 50)
    assert.deepEqual(taken, expected)
  })

  test('is nobody\'s where no app has set it going: such an exception ends the process as ever', async () => {
    await assert.rejects(run(process.execPath, [THROWS, 'nobody'], { timeout: 60_000 }), ({ code, stdout, stderr }) => {
      assert.deepEqual([code, stdout], [1, 'exit 1\n'])
      assert.match(stderr, /Error: nobody\n +at .*throws-everywhere/)
      return true
    })
  })

  test('is said to whoever asks, and to nobody behind it', (t) => {
    const { scopes, scope } = open(t)
    assert.equal(scope.run(() => scopes.current()), 'shop')
    assert.equal(scope.run(() => scopes.outside(() => scopes.current())), null)
    assert.equal(scopes.current(), null)
    assert.throws(() =>
      scope.run(() => {
        throw new Error('for the caller')
      }), /for the caller/)
  })
})

describe('what an app throws when it is called', () => {
  test('is told once, in no scope, and harms no caller; what comes later is late', async (t) => {
    const { scope, faults } = open(t)
    const [first, second, third] = ['first', 'second', 'third'].map((message) => new Error(message))
    scope.call(() => {
      throw first
    })
    scope.bind((error: Error) => {
      throw error
    })(second)
    scope.call(async () => {
      throw third
    })
    await null
    await null
    assert.deepEqual(faults, [[null, first], ['late', 'shop', second], ['late', 'shop', third]])
  })

  test('is late once it is closed, and no fault of the one that is opened in its place', (t) => {
    const { scopes, scope, faults } = open(t)
    scope.close()
    const next = scopes.open('shop', { onFault: () => faults.push('next') })
    const error = new Error('of the one before')
    scope.call(() => {
      throw error
    })
    assert.deepEqual(faults, [['late', 'shop', error]])
    next.call(() => {
      throw error
    })
    assert.equal(faults.at(-1), 'next')
  })
})
