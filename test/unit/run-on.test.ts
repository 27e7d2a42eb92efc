import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { transformSync } from 'rolldown/utils'
import { isNewEnough } from '../../server/node-needed.js'
import { findNode, installedNodes } from '../../server/run-on.js'
import { tempFolder } from '../support/folder.ts'

const NONE = '/nowhere/node'

/** Makes a program in a home folder, as a manager of versions has it. */
function install (home: string, file: string, mode = 0o755) {
  const place = path.join(home, file)
  mkdirSync(path.dirname(place), { recursive: true })
  writeFileSync(place, '#!/bin/sh\necho "$@"\n')
  chmodSync(place, mode)
  return place
}

test('a Node is new enough from 22.19 on', () => {
  assert.deepEqual(['22.19.0', '22.20.1', '24.0.0', '100.0.0'].filter(isNewEnough).length, 4)
  assert.deepEqual(['22.18.9', '21.99.0', '20.20.2', '8.0.0'].filter(isNewEnough), [])
})

test('a newer Node is that of the installation, else the one that is named, else the newest of nvm, fnm, volta, mise and asdf', () => {
  const home = tempFolder()
  const env = { HOME: home, XDG_DATA_HOME: undefined, CLUSTERDECK_NODE: undefined as string | undefined }
  assert.equal(findNode(env, NONE), null)
  install(home, '.nvm/versions/node/v20.20.2/bin/node')
  assert.equal(findNode(env, NONE), null, 'too old')
  const asdf = install(home, '.asdf/installs/nodejs/22.19.0/bin/node')
  assert.equal(findNode(env, NONE), asdf)
  install(home, '.local/share/fnm/node-versions/v24.9.0/installation/bin/node')
  const mise = install(home, '.local/share/mise/installs/node/24.10.0/bin/node')
  install(home, '.local/share/mise/installs/node/latest/bin/node')
  assert.equal(findNode(env, NONE), mise)
  assert.deepEqual(installedNodes(env).map(({ version }) => version), ['24.10.0', '24.9.0', '22.19.0', '20.20.2'])
  const named = install(home, 'mine/node')
  env.CLUSTERDECK_NODE = named
  assert.equal(findNode(env, NONE), named)
  const pinned = install(home, 'pinned/node')
  assert.equal(findNode(env, pinned), pinned)
})

test('a Node that others may write to, and one that cannot be run, is none', () => {
  const home = tempFolder()
  const env = { HOME: home }
  install(home, '.nvm/versions/node/v24.1.0/bin/node', 0o644)
  const shared = install(home, '.volta/tools/image/node/24.2.0/bin/node')
  chmodSync(path.dirname(shared), 0o777)
  assert.equal(findNode(env, NONE), null)
  assert.equal(findNode({ ...env, CLUSTERDECK_NODE: shared }, NONE), null)
})

test('the launcher has no syntax that is newer than Node 14', () => {
  for (const name of ['cli.js', 'node-needed.js', 'run-on.js']) {
    const text = readFileSync(path.join(import.meta.dirname, '../../server', name), 'utf8')
    const [old, unchanged] = ['node14', 'esnext'].map((target) => transformSync(name, text, { target }).code)
    assert.ok(old === unchanged, name)
  }
})
