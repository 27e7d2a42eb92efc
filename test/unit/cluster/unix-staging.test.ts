import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync,
  writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import { constants } from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createSockets } from '../../../server/cluster/sockets.ts'
import { findUnixPath } from '../../../server/cluster/unix-path.ts'
import { stageUnixPath, whyNotStaged, type Staged } from '../../../server/cluster/unix-staging.ts'
import { loadPosix } from '../../../server/system/posix.ts'
import { fstatSocket } from '../../../workers/socket-file.ts'
import { fakeKeeper } from '../../support/fake-keeper.ts'
import { tempFolder } from '../../support/folder.ts'
import { withoutOtherPrograms } from '../../support/other-programs.ts'
import type { SocketHandle } from '../../../workers/node-internals.d.ts'

const query = (file: string, fields: object = {}) => ({ address: file, port: -1, addressType: -1, index: 0, ...fields })

async function stage (file: string,
  { isFirst = false, ...fields }: { isFirst?: boolean, asked?: string, mode?: number } = {}): Promise<Staged>
{
  const staged = await stageUnixPath(query(file, fields), { isFirst })
  assert.equal(staged.errno, undefined)
  return staged as Staged
}

/** @returns as getsockname(2) tells it */
function ownName ({ handle }: { handle: SocketHandle }): string | undefined {
  const line = readFileSync('/proc/net/unix', 'utf8').split('\n').find((each) =>
    each.split(/\s+/)[6] === String(fstatSocket(handle.fd).ino)
  )
  return line?.split(/\s+/)[7]
}

/**
 * @param name what each client is told
 * @returns closes it
 */
function serve (handle: SocketHandle, name: string): () => void {
  const server = net.createServer((connection) => connection.on('error', () => {}).end(name))
  server.listen(handle)
  return () => server.close()
}

async function ask (file: string): Promise<string> {
  const connection = net.connect(file)
  const [told] = await once(connection, 'data')
  connection.destroy()
  return String(told)
}

describe('a Unix socket of another program', { skip: withoutOtherPrograms || (whyNotStaged() ?? false) }, () => {
  test('knows itself by the path that was asked for, and takes the place of another one without a moment in which nobody is there', async (t) => {
    const folder = tempFolder()
    mkdirSync(path.join(folder, 'real', 'deep'), { recursive: true })
    symlinkSync('real', path.join(folder, 'link'))
    const file = path.join(folder, 'link', 'deep', '..', 'app.sock')
    const first = await stage(file, { isFirst: true, mode: 0o640 })
    assert.deepEqual([first.path.show(null), statSync(file).mode & 0o777], [0, 0o640])
    t.after(serve(first.handle, 'first'))
    chmodSync(file, 0o606)

    for (const asked of [file, 'app.sock', '../link/app.sock', './deep/../app.sock']) {
      const next = await stage(file, { asked })
      assert.deepEqual([ownName(next), await ask(file)], [asked, 'first'])
      next.handle.close()
      next.path.remove()
    }

    const second = await stage(file)
    const end = serve(second.handle, 'second')
    const answers = new Set()
    const asking = (async () => {
      while (answers.size < 2) answers.add(await ask(file))
    })()
    while (!answers.has('first')) await new Promise(setImmediate)
    assert.equal(second.path.show(first.path.memory), 0)
    await asking
    assert.deepEqual([...answers], ['first', 'second'])
    assert.equal(statSync(file).mode & 0o777, 0o606, 'the permissions that the app has given the path')
    first.path.remove()
    assert.equal(await ask(file), 'second')

    const found = findUnixPath(second.path.memory)
    assert.ok(found?.isShown())
    found?.leave()
    end()
    second.path.remove()
    assert.deepEqual(readdirSync(path.join(folder, 'real')), ['deep'])
  })

  test('harms nothing that somebody else has put at its path, before it is bound or since', async () => {
    const folder = tempFolder()
    const file = path.join(folder, 'app.sock')
    const next = await stage(file, { isFirst: true })
    writeFileSync(file, 'kept')
    assert.equal(next.path.show(null), -constants.errno.EADDRINUSE)
    next.handle.close()
    next.path.remove()
    assert.deepEqual(await stageUnixPath(query(file), { isFirst: true }), { errno: -constants.errno.EADDRINUSE })
    assert.deepEqual([readdirSync(folder), readFileSync(file, 'utf8')], [['app.sock'], 'kept'])
    assert.deepEqual(await stageUnixPath(query(path.join(folder, 'none', 'app.sock')), { isFirst: true }), {
      errno: -constants.errno.EACCES
    })
    assert.deepEqual(await stageUnixPath(query(file, { asked: `/${'x'.repeat(120)}` }), { isFirst: false }), {
      errno: -constants.errno.ENAMETOOLONG
    })
    assert.deepEqual(readdirSync(folder), ['app.sock'])
  })

  test('takes away what killed masters have left at its path, and nothing of a server', async () => {
    const folder = tempFolder()
    const file = path.join(folder, 'app.sock')
    const left = await stage(file, { isFirst: true })
    left.path.show(null)
    left.path.leave()
    left.handle.close()
    const next = await stage(file, { isFirst: true })
    next.handle.close()
    const [own, ...others] = readdirSync(folder)
    assert.match(own, /^\.app\.sock\.clusterdeck-/)
    assert.deepEqual(others, [])
  })

  test('is bound at its path itself where no process may have a root of its own, and the reason is told', () => {
    const folder = tempFolder()
    const file = path.join(folder, 'app.sock')
    const code = `
      import { statSync } from 'node:fs'
      import { stageUnixPath, whyNotStaged } from '${new URL('../../../server/cluster/unix-staging.ts',
      import.meta.url)}'
      const query = ${JSON.stringify(query(file))}
      const first = await stageUnixPath(query, { isFirst: true })
      const { ino } = statSync(query.address)
      const second = await stageUnixPath(query, { isFirst: false })
      const within = await stageUnixPath({ ...query, asked: 'app.sock' }, { isFirst: false })
      console.log(JSON.stringify([first.path.show(null), second.errno, statSync(query.address).ino === ino, typeof within.handle, whyNotStaged()]))
      process.exit()`
    const denies = fileURLToPath(new URL('../../support/denies-calls.ts', import.meta.url))
    const CHROOT = process.arch === 'arm64' ? 51 : 161
    const told = JSON.parse(
      execFileSync(process.execPath, [denies, String(CHROOT), process.execPath, '--input-type=module', '-e', code], {
        encoding: 'utf8'
      })
    )
    assert.deepEqual(told.slice(0, 4), [0, 0, true, 'object'])
    assert.match(told[4], /^takes the rights of root, or a user namespace \(chroot: EPERM; /)
  })
})

/** Workers of which each one that is asked for belongs to a generation. */
function setUp ({ held = new Map(), folder = tempFolder() } = {}) {
  const file = path.join(folder, 'app.sock')
  const keeper = fakeKeeper(held)
  const { kept } = keeper
  const now: { of: Record<number, string>,
    rollout: { generation: string, isRevoked: boolean, isAtOnce: boolean } | null, leaving: Set<number> } = { of: {},
      rollout: null, leaving: new Set() }
  let paths: string[] = []
  const sockets = createSockets({ keeper, onPaths (files) {
    paths = files.map((each) => each.file)
  }, onBindError: () => false, stage: stageUnixPath,
    generations: { of: (worker) => now.of[worker] ?? null, rollout: () => now.rollout,
      stays: (worker) => !now.leaving.has(worker) } })
  return { file, folder, sockets, kept, now, request, serve: serveNew, beReady, paths: () => paths }

  async function request (worker: number) {
    const reply = sockets.request(worker, { query: query(file) })
    if (!reply.until) return reply
    await reply.until
    return sockets.request(worker, { query: query(file) })
  }

  function beReady (worker: number) {
    sockets.establish(worker)
    sockets.look()
  }

  /** @returns its handle, at which nobody accepts */
  async function serveNew (worker: number, generation?: string): Promise<SocketHandle> {
    if (generation) now.of[worker] = generation
    const { handle } = await request(worker) as { handle: SocketHandle }
    loadPosix()?.listen(handle.fd, 16)
    return handle
  }
}

const stages = (folder: string) => readdirSync(folder).filter((name) => name !== 'app.sock').length

describe('the workers of a rollout of another program', { skip: withoutOtherPrograms || (whyNotStaged() ?? false) },
  () => {
    test('share a new Unix socket, to which the path leads once the first of them is ready; what waits at the old one is for the old ones', async (t) => {
      const { file, folder, sockets, kept, serve: serveNew, beReady, request, paths } = setUp()
      t.after(() => sockets.close())
      const [old, same] = await Promise.all([serveNew(1), serveNew(2)])
      assert.equal(same, old)
      for (const worker of [1, 2]) beReady(worker)
      const before = statSync(file).ino
      const waiting = net.connect(file)
      await once(waiting, 'connect')

      const [next, third] = await Promise.all([serveNew(3, 'rollout 1'), serveNew(4, 'rollout 1')])
      assert.ok(next !== old && next === third)
      assert.deepEqual([statSync(file).ino, sockets.queueOf(1)], [before, 0], 'the path leads to the old ones')
      const probe = sockets.connect(fstatSocket(next.fd).ino) as net.Socket
      await once(probe, 'connect')
      probe.destroy()
      assert.deepEqual(paths(), [file, file])

      beReady(3)
      assert.notEqual(statSync(file).ino, before)
      assert.deepEqual([1, 2, 3].map(sockets.queueOf), [1, 1, 0])
      assert.equal((await request(5)).handle, next, 'whoever takes the place of one that has gone')
      sockets.forget(1)
      assert.equal(stages(folder), 2)
      sockets.forget(2)
      assert.deepEqual([stages(folder), kept.size, sockets.names().length], [1, 1, 1])
      await once(waiting, 'error')
    })

    test('leave the path as it was where none of them gets ready, and give it back where they are taken back', async (t) => {
      const { file, folder, sockets, now, serve: serveNew, beReady, request } = setUp()
      t.after(() => sockets.close())
      const old = await serveNew(1)
      await serveNew(2)
      for (const worker of [1, 2]) beReady(worker)
      const { ino } = statSync(file)
      await serveNew(3, 'rollout 1')
      sockets.forget(3)
      assert.deepEqual([statSync(file).ino, stages(folder)], [ino, 1])

      await serveNew(4, 'rollout 2')
      now.rollout = { generation: 'rollout 2', isRevoked: false, isAtOnce: false }
      beReady(4)
      assert.notEqual(statSync(file).ino, ino)
      now.rollout = null
      sockets.look()
      assert.equal(statSync(file).ino, ino, 'it is over, and has left more of the old ones')

      await serveNew(5, 'rollout 3')
      now.rollout = { generation: 'rollout 3', isRevoked: false, isAtOnce: false }
      beReady(5)
      sockets.forget(1)
      assert.notEqual(statSync(file).ino, ino)
      now.rollout = { generation: 'rollout 3', isRevoked: true, isAtOnce: false }
      sockets.look()
      assert.equal(statSync(file).ino, ino, 'at once, as there is an old one left')
      now.of[6] = 'rollout 3 back'
      assert.equal((await request(6)).handle, old)

      now.rollout = null
      for (const worker of [4, 5]) now.leaving.add(worker)
      const next = await serveNew(7, 'rollout 4')
      beReady(7)
      assert.equal((await request(8)).handle, next)
      now.leaving.add(7)
      sockets.look()
      assert.equal(statSync(file).ino, ino, 'the only one that was new is about to end')

      now.rollout = { generation: 'rollout 5', isRevoked: false, isAtOnce: true }
      for (const worker of [9, 10]) {
        await serveNew(worker, 'rollout 5')
        beReady(worker)
      }
      assert.equal(statSync(file).ino, ino, 'all of a restart are to be ready first')
      now.leaving.add(2)
      sockets.look()
      assert.notEqual(statSync(file).ino, ino)
    })

    test('and others are never given a Unix socket that a worker has shut down', async (t) => {
      const { file, sockets, serve: serveNew, beReady } = setUp()
      t.after(() => sockets.close())
      const old = await serveNew(1)
      beReady(1)
      createRequire(import.meta.url)('koffi').load(null).func('int shutdown(int fd, int how)')(old.fd, 2)
      const next = await serveNew(2)
      assert.equal(await serveNew(3), next)
      beReady(2)
      const client = net.connect(file)
      await once(client, 'connect')
      client.destroy()
      assert.equal(next.fd !== old.fd && sockets.names().length, 2)
    })

    test('are there for the next master, each with its socket', async (t) => {
      const { folder, file, sockets, kept, serve: serveNew, beReady } = setUp()
      for (const worker of [1, 2]) {
        await serveNew(worker, `rollout ${worker}`)
        beReady(worker)
      }
      assert.equal(kept.size, 2)
      const { ino } = statSync(file)
      const held = new Map([...kept].map(([key, { handle, data }]) => [key, { handle, data }]))
      sockets.letGo()
      const next = setUp({ held, folder })
      t.after(() => next.sockets.close())
      assert.equal(statSync(file).ino, ino)
      assert.equal((await next.request(3)).handle, kept.get([...kept.keys()][1])?.handle)
      const third = await next.serve(4, 'orphans')
      next.beReady(4)
      assert.notEqual(statSync(file).ino, ino)
      assert.ok(third && existsSync(file))
      next.sockets.closeUnused()
      assert.equal(stages(folder), 2, 'those that are used')
    })
  })
