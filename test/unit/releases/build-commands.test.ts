import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildOf, hasInstallScript } from '../../../server/releases/build-commands.ts'
import { rows } from '../../support/rows.ts'

/** A commit with these files. */
function treeOf (files: Record<string, string>) {
  return {
    names: async (folder: string) => [...new Set(Object.keys(files).filter((name) =>
      name.startsWith(folder)
    ).map((name) =>
      name.slice(folder.length).split('/')[0]
    ))],
    file: async (file: string) =>
      files[file] ?? null
  }
}

const BUILT = JSON.stringify({ scripts: { build: 'tsc' }, dependencies: { a: '1' } })
const PLAIN = JSON.stringify({ dependencies: { a: '1' } })
const PACKAGES: Record<string, string> = { built: BUILT, plain: PLAIN, broken: '[',
  yarn4: JSON.stringify({ packageManager: 'yarn@4.1.0' }),
  script: JSON.stringify({ scripts: { build: 'node build.js' } }) }

test('how a commit is built is guessed from its files, unless a hook says it', async () => {
  for (const [what, names, expected, prefix = ''] of rows(`
    npm                                  → built, package-lock.json      → npm ci, then npm run build
    npm, with nothing to build           → plain, npm-shrinkwrap.json    → npm ci
    pnpm                                 → built, pnpm-lock.yaml   → pnpm install --frozen-lockfile, then pnpm run build
    Yarn 1                               → built, yarn.lock        → yarn install --frozen-lockfile, then yarn run build
    a newer Yarn, by its file            → plain, yarn.lock, .yarnrc.yml → yarn install --immutable
    a newer Yarn, by its version         → yarn4, yarn.lock              → yarn install --immutable
    bun                                  → built, bun.lock         → bun install --frozen-lockfile, then bun run build
    a script alone                       → script                        → npm run build
    packages that are in the repository  → plain, node_modules/a/index.js → undefined
    no package                           → app.js                        → undefined
    a package.json that is none          → broken, app.js                → undefined
    the lock file of a workspace above → in/built, package.json, pnpm-lock.yaml → pnpm install --frozen-lockfile, then pnpm run build → in/
  `, '→')) {
    const files = Object.fromEntries(names.split(', ').map((name) => {
      const [, folder, kind] = /^(in\/)?(.*)$/.exec(name) ?? []
      return kind in PACKAGES ? [`${folder ?? ''}package.json`, PACKAGES[kind]] : [name, '{}']
    }))
    const build = await buildOf({ tree: treeOf(files), prefix, hook: undefined })
    assert.equal(String(build?.text), expected, what)
  }
  const hook = { command: ['make'], timeoutMs: 1000 }
  const build = await buildOf({ tree: treeOf({ 'package.json': BUILT, 'package-lock.json': '{}' }), prefix: '', hook })
  assert.deepEqual([build?.text, build?.command, build?.install, build?.isGuess], ['hooks.build', ['make'], null,
    false])
  await assert.rejects(buildOf({ tree: treeOf({ 'package.json': PLAIN }), prefix: '', hook: undefined }), {
    code: 'build-unconfirmed',
    message: /there is no lock file/
  })
})

test('what is installed depends on the lock file, the settings of the package manager and the command, and on nothing else', async () => {
  const keyOf = async (files: Record<string, string>) =>
    (await buildOf({ tree: treeOf(files), prefix: '', hook: undefined }))?.install?.key
  const key = await keyOf({ 'package.json': PLAIN, 'package-lock.json': '{}' })
  assert.equal(await keyOf({ 'package.json': BUILT, 'package-lock.json': '{}', 'app.js': 'other' }), key)
  for (const other of [{ 'package-lock.json': '{ }' }, { 'package-lock.json': '{}', '.npmrc': 'omit=optional' }, {
    'npm-shrinkwrap.json': '{ "lockfileVersion": 3 }'
  }] as Record<string, string>[]) {
    assert.notEqual(await keyOf({ 'package.json': PLAIN, ...other }), key)
  }
  assert.equal(await keyOf({ 'package.json': PLAIN, 'pnpm-lock.yaml': '\'lib@file:lib\':\n' }), null)
})

test('an install script of the app may depend on all of its files; one that only puts hooks into a repository does not', () => {
  for (const [scripts, expected] of [[{}, false], [{ prepare: 'husky' }, false], [{ prepare: 'husky install || true' },
    false], [{ prepare: 'husky && npm run generate' }, true], [{ postinstall: 'prisma generate' }, true], [{
    install: 'node-gyp rebuild'
  }, true]] as [Record<string, string>, boolean][])
    assert.equal(hasInstallScript(JSON.stringify({ scripts })), expected, JSON.stringify(scripts))
  assert.equal(hasInstallScript('['), false)
})
