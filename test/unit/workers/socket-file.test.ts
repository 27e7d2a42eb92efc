import assert from 'node:assert/strict'
import { closeSync, constants, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import { once } from 'node:events'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fstatSocket, lstatSocket, removeSocket } from '../../../workers/socket-file.ts'
import { tempFolder } from '../../support/folder.ts'

/** Linux's: opens a socket only to look at it. */
const O_PATH = 0o10000000

describe('files that may be sockets', () => {
  test('after a look at a socket, and after its removal, a module behind a link is loaded under its own name', async (t) => {
    const { folder, resolve } = linkedModules()
    const file = path.join(folder, 'socket')
    const server = net.createServer().listen(file)
    t.after(() => server.close())
    await once(server, 'listening')

    assert.equal(lstatSocket(file)?.isSocket(), true)
    assert.equal(resolve('second'), path.join(folder, 'real', 'second.js'))
    if (process.platform === 'linux') {
      const fd = openSync(file, constants.O_RDONLY | O_PATH)
      assert.deepEqual([fstatSocket(fd).ino, fstatSocket(fd).isSocket()], [lstatSocket(file)?.ino, true])
      closeSync(fd)
      assert.equal(resolve('third'), path.join(folder, 'real', 'third.js'))
    }
    removeSocket(file)
    assert.equal(lstatSocket(file), undefined)
    assert.equal(resolve('fourth'), path.join(folder, 'real', 'fourth.js'))
    removeSocket(file)
  })
})

/** A folder of modules that is reached by a link, and is known to Node already. */
function linkedModules () {
  const folder = tempFolder()
  mkdirSync(path.join(folder, 'real'))
  for (const name of ['first', 'second', 'third', 'fourth']) writeFileSync(path.join(folder, 'real', `${name}.js`), '')
  symlinkSync('real', path.join(folder, 'node_modules'))
  const { resolve } = createRequire(path.join(folder, 'app.js'))
  assert.equal(resolve('first'), path.join(folder, 'real', 'first.js'))
  return { folder, resolve }
}
