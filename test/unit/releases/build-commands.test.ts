import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { buildOf, hasInstallScript } from '../../../server/releases/build-commands.ts'

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

describe('the guess', () => {
  for (const { what, files, prefix = '', expected } of [{ what: 'npm',
    files: { 'package.json': BUILT, 'package-lock.json': '{}' }, expected: 'npm ci, then npm run build' }, {
    what: 'npm, with nothing to build',
    files: { 'package.json': PLAIN, 'npm-shrinkwrap.json': '{}' },
    expected: 'npm ci'
  }, { what: 'pnpm', files: { 'package.json': BUILT, 'pnpm-lock.yaml': '' },
    expected: 'pnpm install --frozen-lockfile, then pnpm run build' }, { what: 'Yarn 1',
    files: { 'package.json': BUILT, 'yarn.lock': '' },
    expected: 'yarn install --frozen-lockfile, then yarn run build' }, { what: 'a newer Yarn, by its file',
    files: { 'package.json': PLAIN, 'yarn.lock': '', '.yarnrc.yml': '' }, expected: 'yarn install --immutable' }, {
    what: 'a newer Yarn, by its version',
    files: { 'package.json': JSON.stringify({ packageManager: 'yarn@4.1.0' }), 'yarn.lock': '' },
    expected: 'yarn install --immutable'
  }, { what: 'bun', files: { 'package.json': BUILT, 'bun.lock': '' },
    expected: 'bun install --frozen-lockfile, then bun run build' }, { what: 'a script alone',
    files: { 'package.json': JSON.stringify({ scripts: { build: 'node build.js' } }) }, expected: 'npm run build' }, {
    what: 'packages that are in the repository',
    files: { 'package.json': PLAIN, 'node_modules/a/index.js': '' },
    expected: undefined
  }, { what: 'no package', files: { 'app.js': '' }, expected: undefined }, { what: 'a package.json that is none',
    files: { 'package.json': '[', 'app.js': '' }, expected: undefined }, { what: 'the lock file of a workspace above',
    prefix: 'apps/web/', files: { 'apps/web/package.json': BUILT, 'package.json': '{}', 'pnpm-lock.yaml': '' },
    expected: 'pnpm install --frozen-lockfile, then pnpm run build' }])
  {
    test(what, async () => {
      assert.equal((await buildOf({ tree: treeOf(files), prefix, hook: undefined }))?.text, expected)
    })
  }

  test('is none where a hook is set, and cannot be made of dependencies without a lock file', async () => {
    const hook = { command: ['make'], timeoutMs: 1000 }
    const build = await buildOf({ tree: treeOf({ 'package.json': BUILT, 'package-lock.json': '{}' }), prefix: '',
      hook })
    assert.deepEqual([build?.text, build?.command, build?.install, build?.isGuess], ['hooks.build', ['make'], null,
      false])
    await assert.rejects(buildOf({ tree: treeOf({ 'package.json': PLAIN }), prefix: '', hook: undefined }), {
      code: 'build-unconfirmed',
      message: /there is no lock file/
    })
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
