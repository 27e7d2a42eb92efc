import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { identifyProcess } from '../../../server/system/process-identity.ts'
import { registerDeck, runningDecks, runtimeFolder, withdrawDeck } from '../../../server/system/running-decks.ts'
import { tempFolder } from '../../support/folder.ts'
import { registered } from '../../support/registered.ts'
import type { RunningDeck } from '../../../server/system/running-decks.ts'

const NO_PROCESS = { pid: 2 ** 30, startTime: null }
const isRoot = process.geteuid?.() === 0
const noOwners = !process.geteuid && 'this system knows no owners'

function deck (fields: Partial<RunningDeck> = {}) {
  return registered({ name: 'shop', dataDir: path.join(tempFolder(), 'data'), ...fields })
}

/** A list of its own. */
function list () {
  const folder = path.join(tempFolder(), 'running')
  return { folder, env: { CLUSTERDECK_RUNTIME_DIR: folder } }
}

test('decks that run are listed by name, in a folder of this user alone', () => {
  const { folder, env } = list()
  assert.deepEqual(runningDecks(env), [])
  const [shop, mail] = [deck(),
    deck({ name: 'mail', keeper: identifyProcess(process.ppid), configFile: '/srv/clusterdeck.config.js',
      fingerprint: 'AB:CD' })]
  registerDeck(shop, env)
  registerDeck(mail, env)
  assert.deepEqual(runningDecks(env), [mail, shop])
  assert.equal(statSync(folder).mode & 0o777, 0o700)
})

test('a data folder has one entry, whichever way leads there and whoever is the master', () => {
  const { env } = list()
  const [real, link] = [tempFolder(), path.join(tempFolder(), 'link')]
  symlinkSync(real, link)
  registerDeck(deck({ dataDir: real, master: NO_PROCESS }), env)
  registerDeck(deck({ dataDir: link }), env)
  assert.deepEqual(runningDecks(env).map(({ dataDir }) => dataDir), [link])
})

test('an entry is withdrawn by the master that it tells of, and by no other', () => {
  const { env, folder } = list()
  const own = deck()
  withdrawDeck(own, env)
  registerDeck(own, env)
  withdrawDeck({ ...own, master: NO_PROCESS }, env)
  assert.equal(runningDecks(env).length, 1)
  withdrawDeck(own, env)
  assert.deepEqual(readdirSync(folder), [])
})

test('an entry is forgotten once neither its master nor its keeper lives', async () => {
  const { env, folder } = list()
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  await once(child, 'spawn')
  registerDeck(deck({ master: NO_PROCESS, keeper: identifyProcess(Number(child.pid)) }), env)
  assert.equal(runningDecks(env).length, 1, 'the keeper starts another master')
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.deepEqual(runningDecks(env), [])
  assert.deepEqual(readdirSync(folder), [])
})

test('a pid that another process has got since is no sign of life', () => {
  const { env } = list()
  registerDeck(deck({ master: { pid: process.pid, startTime: 'another boot:1' } }), env)
  assert.deepEqual(runningDecks(env), process.platform === 'linux' ? [] : [deck()])
})

test('what no master has written is left out, and left where it is', () => {
  const { env, folder } = list()
  const own = deck()
  registerDeck(own, env)
  const [file] = readdirSync(folder)
  const garbage = { 'half.json': JSON.stringify(own).slice(0, 40), 'list.json': '[]', 'null.json': 'null',
    'empty.json': '', 'other.json': JSON.stringify({ ...own, adminUrl: 'javascript:alert(1)' }),
    'nameless.json': JSON.stringify({ ...own, name: '' }),
    'relative.json': JSON.stringify({ ...own, dataDir: '../data' }),
    'ageless.json': JSON.stringify({ ...own, startedAt: 'yesterday' }),
    'everybody.json': JSON.stringify({ ...own, master: { pid: -1, startTime: null } }),
    'huge.json': JSON.stringify({ ...own, name: 'x'.repeat(100_000) }), [`${file}.new`]: JSON.stringify(own) }
  for (const [name, text] of Object.entries(garbage)) writeFileSync(path.join(folder, name), text)
  mkdirSync(path.join(folder, 'folder.json'))
  assert.deepEqual(runningDecks(env), [own])
  assert.equal(readdirSync(folder).length, Object.keys(garbage).length + 2)
})

test('a folder that others may look into, a link and a file are refused, and stay as they are', { skip: noOwners },
  () => {
    const open = tempFolder()
    for (const mode of [0o755, 0o710, 0o777]) {
      chmodSync(open, mode)
      refused(open,
        new RegExp(
          `^CLUSTERDECK_RUNTIME_DIR: expected a folder of this user alone, received ${open}, which is open to others \\(mode 0${
            mode.toString(8)
          }, expected 0700\\)$`
        ))
    }
    assert.deepEqual(readdirSync(open), [])
    const [link, file] = ['link', 'file'].map((name) => path.join(tempFolder(), name))
    symlinkSync(tempFolder(), link)
    writeFileSync(file, '')
    refused(link, /received .*link, which is none$/)
    refused(file, /received .*file, which is none$/)
  })

test('a folder of another user is refused', { skip: !isRoot && 'only root can give a folder away' }, () => {
  const folder = tempFolder()
  chownSync(folder, 54321, 54321)
  refused(folder, /, which belongs to another user \(uid 54321, this process has 0\)$/)
})

test('the folder is that of the runtime files of this user, or a temporary one where they are those of another', () => {
  const own = tempFolder()
  assert.equal(runtimeFolder({ XDG_RUNTIME_DIR: own }), path.join(own, 'clusterdeck'))
  const temporary = runtimeFolder({})
  assert.equal(path.basename(temporary), `clusterdeck-${process.geteuid?.() ?? 'user'}`)
  for (const other of ['relative', path.join(own, 'missing'), ''])
    assert.equal(runtimeFolder({ XDG_RUNTIME_DIR: other }), temporary)
  if (!isRoot) return
  chownSync(own, 54321, 54321)
  assert.equal(runtimeFolder({ XDG_RUNTIME_DIR: own }), temporary)
})

function refused (folder: string, message: RegExp) {
  const env = { CLUSTERDECK_RUNTIME_DIR: folder }
  assert.throws(() => registerDeck(deck(), env), { code: 'runtime-dir-unusable', message })
  assert.throws(() => runningDecks(env), { code: 'runtime-dir-unusable', message })
}
