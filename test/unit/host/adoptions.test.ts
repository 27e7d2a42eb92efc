import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { createJsonLines } from '../../../server/handover/json-lines.ts'
import { DeckError } from '../../../server/errors.ts'
import { createAdoptions } from '../../../server/host/adoptions.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import type { Apps } from '../../../server/host/apps.ts'

const WITHIN_MS = 30_000

/** An adoption by a host whose workers are ready once `served` is reached. */
async function begin (t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const served: PromiseWithResolvers<void> = Promise.withResolvers()
  const dataDir = tempFolder()
  const apps = fake<Apps>({ expect: async () => ({ name: 'shop', dataDir }), adopt: () => served.promise,
    replace: (_, { abandoned }) =>
      Promise.race([served.promise, abandoned.then((why) => {
        throw new DeckError('start-failed', why)
      })]) })
  const adoptions = createAdoptions({ folder: tempFolder(), apps, log: fake({}), comesWithinMs: WITHIN_MS })
  const { view: { id }, path, secret } = await adoptions.begin({ actor: 'cli' })
  return {
    served,
    view: () => adoptions.view(id),

    /** A deck comes, or a command for a program, and is accepted. */
    async meet (hello: object = { type: 'hello', pid: process.pid, dataDir }) {
      const connection = net.connect({ path })
      t.after(() => connection.destroy())
      await once(connection, 'connect')
      const line = createJsonLines(connection)
      line.send(fake({ ...hello, secret, order: { cwd: dataDir } }))
      assert.deepEqual(await line.next(), { type: 'accepted', name: 'shop', pid: process.pid })
      return line
    }
  }
}

test('a deck that does not come is waited for no longer than that', async (t) => {
  const { view } = await begin(t)
  assert.equal(view().state, 'waiting')
  t.mock.timers.tick(WITHIN_MS)
  assert.deepEqual([view().state, view().reason], ['failed', 'no deck has come'])
})

test('a deck that has come may take longer than that until its workers are ready', async (t) => {
  const { served, view, meet } = await begin(t)
  const line = await meet()
  line.send({ type: 'sockets', sockets: [] })
  assert.equal((await line.next())?.type, 'received')
  line.send({ type: 'released' })
  t.mock.timers.tick(WITHIN_MS)
  assert.deepEqual(view(), { id: 1, state: 'moving', app: 'shop', reason: null })
  served.resolve()
  assert.equal((await line.next())?.type, 'serving')
  assert.deepEqual(view(), { id: 1, state: 'done', app: 'shop', reason: null })
  line.close()
})

test('a deck whose sockets come too late stays where it is', async (t) => {
  const { view, meet } = await begin(t)
  const line = await meet()
  t.mock.timers.tick(WITHIN_MS)
  line.send({ type: 'sockets', sockets: [] })
  assert.deepEqual(await line.next(), { type: 'refused', code: 'not-possible', message: 'the deck stays where it is' })
  assert.equal(view().state, 'failed')
})

test('a command that moves a program and ends before its workers are ready has nothing moved', async (t) => {
  const { view, meet } = await begin(t)
  const line = await meet({ type: 'program', from: 'web of PM2' })
  line.send({ type: 'sockets', sockets: [] })
  assert.equal((await line.next())?.type, 'received')
  line.send({ type: 'released' })
  line.close()
  await line.next()
  assert.deepEqual([view().state, view().reason], ['failed', 'the command that moves it has ended'])
})
