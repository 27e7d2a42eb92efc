import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { openSqlite } from '../../../db/sqlite.ts'
import { lookThroughApp } from '../../../server/releases/app-files.ts'
import { tempFolder } from '../../support/folder.ts'
import { createRepository } from '../../support/repository.ts'

/** `db`: a database */
function appWith (files: Record<string, string>) {
  const folder = tempFolder()
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    if (text === 'db') openSqlite(file).exec('CREATE TABLE orders (id INTEGER)').close()
    else writeFileSync(file, text)
  }
  return folder
}

const look = (folder: string, except: string[] = []) =>
  lookThroughApp(folder, { except: except.map((name) => path.join(folder, name)), env: process.env })

test('what an app writes is found by its content, and by names that mean nothing else', async () => {
  const folder = appWith({ 'app.js': 'app.get(\'/healthz\', ok)', '.env': 'A=1', '.env.example': 'A=',
    'shop.sqlite': 'db', 'notes.db': 'no database', 'data/orders.db': 'db', 'data/.gitkeep': '', 'uploads/a.png': '',
    'logs/app.log': '', 'src/uploads/route.js': '', 'node_modules/some/seed.db': 'db', 'sessions/x.json': '{}',
    '.clusterdeck/history.db': 'db', 'of-this-deck/history.db': 'db' })
  const { code, ...found } = await look(folder, ['of-this-deck'])
  assert.deepEqual(found, { data: ['data/', 'sessions/', 'shop.sqlite', 'uploads/'], environment: ['.env'],
    logs: ['logs/'], healthPaths: ['/healthz'], isWhole: true })
  assert.match(code, /healthz/)
})

test('what git tracks came with the code', async () => {
  const folder = appWith({ 'app.js': '', 'seed.db': 'db', 'shop.db': 'db', '.env': '', 'uploads/.gitkeep': '',
    'files/logo.png': '', '.gitignore': 'shop.db\n' })
  createRepository(folder).commit({}, 'all')
  const { data, environment } = await look(folder)
  assert.deepEqual({ data, environment }, { data: ['shop.db', 'uploads/'], environment: [] })
})

test('a link is none of the data, wherever it leads, and hostile names are left out', async () => {
  const folder = appWith({ 'app.js': '', 'real/shop.db': 'db', 'a\nb.db': 'db', 'back\\slash.db': 'db' })
  symlinkSync('real/shop.db', path.join(folder, 'link.db'))
  symlinkSync('/', path.join(folder, 'uploads'))
  assert.deepEqual((await look(folder)).data, ['real/'])
})

test('a folder that cannot be looked through in time is said to be more than that', async () => {
  const folder = appWith({ 'app.js': '', 'deep/shop.db': 'db' })
  const { isWhole, data } = await lookThroughApp(folder, { except: [], env: process.env, isLate: () => true })
  assert.deepEqual({ isWhole, data }, { isWhole: false, data: [] })
})
