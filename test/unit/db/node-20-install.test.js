import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tempFolder } from '../../support/folder.js'

const OWN = fileURLToPath(new URL('../../../db/node-20/', import.meta.url))
const run = promisify(execFile)
const isNode20 = process.version.startsWith('v20.')
const { dependencies: { 'better-sqlite3': wanted } } = JSON.parse(readFileSync(path.join(OWN, 'package.json'), 'utf8'))

/** The folder as npm has unpacked it, with an npm that writes what it was asked. @param {{ there?: string, exitCode?: number }} [how] `there`: the version of better-sqlite3 that is in it */
function unpack ({ there, exitCode = 0 } = {}) {
  const project = tempFolder()
  const folder = path.join(project, 'node_modules', 'clusterdeck', 'db', 'node-20')
  cpSync(OWN, folder, { recursive: true, filter: (file) => !file.includes(path.join('node-20', 'node_modules')) })
  if (there) {
    const found = path.join(folder, 'node_modules', 'better-sqlite3')
    mkdirSync(found, { recursive: true })
    writeFileSync(path.join(found, 'package.json'), JSON.stringify({ name: 'better-sqlite3', version: there }))
  }
  const [npm, told] = [path.join(project, 'npm-cli.js'), path.join(project, 'told.json')]
  writeFileSync(npm, `require('node:fs').writeFileSync(${JSON.stringify(told)}, JSON.stringify({ words: process.argv.slice(2), cwd: process.cwd(), env: process.env })); process.exitCode = ${exitCode}`)
  return {
    folder,
    install: (/** @type {Record<string, string>} */ env = {}) => run(process.execPath, [path.join(folder, 'install.cjs')], { env: { PATH: process.env.PATH, npm_execpath: npm, ...env } }),
    asked: () => existsSync(told) ? JSON.parse(readFileSync(told, 'utf8')) : null
  }
}

test('Node 20 gets the better-sqlite3 that it needs beside clusterdeck, and later ones nothing', async () => {
  const { folder, install, asked } = unpack()
  await install()
  assert.deepEqual(asked() && [asked().words, asked().cwd], isNode20 ? [['ci', '--prefix', folder], folder] : null)
})

test('the one that an older clusterdeck had will not do', { skip: !isNode20 }, async () => {
  const { install, asked } = unpack({ there: '11.10.0' })
  await install()
  assert.equal(asked().words[0], 'ci')
})

test('nothing is installed where it is there already', async () => {
  const { install, asked } = unpack({ there: wanted })
  await install()
  assert.equal(asked(), null)
})

test('npm installs into that folder also where clusterdeck is installed for all, or into another place', { skip: !isNode20 }, async () => {
  const { install, asked } = unpack()
  await install({ npm_config_global: 'true', npm_config_location: 'global', npm_config_prefix: '/usr', NPM_CONFIG_OMIT: 'optional', npm_config_save_dev: 'true', npm_config_cache: '/tmp/cache', npm_config_nodedir: '/usr' })
  const { env } = asked()
  assert.deepEqual(Object.keys(env).filter((name) => /^npm_config_/i.test(name)).sort(), ['npm_config_cache', 'npm_config_nodedir'])
})

test('the installation fails where npm cannot compile it, as nothing would run', { skip: !isNode20 }, async () => {
  const { install } = unpack({ exitCode: 1 })
  await assert.rejects(install(), ({ code }) => code === 1)
})
