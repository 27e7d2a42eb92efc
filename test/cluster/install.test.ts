import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, lstatSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tempFolder } from '../support/folder.ts'
import { startAndStop } from '../support/install.ts'
import { rareTest } from '../support/rare.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PATIENCE_MS = 120_000
const run = promisify(execFile)
const { PORT: _, TEST_EXTRA_CA_CERTS: certificates, ...others } = process.env
const env = certificates === undefined ? others : { ...others, NODE_EXTRA_CA_CERTS: certificates }
const [installation] = /(?<=^## Install\n(?:.*\n)+? {4})npm .*/m.exec(read('README.md')) ?? ['']
const [runsInTheClone] = /(?<=`)npx \. start app\.js(?=`)/.exec(read('README.md')) ?? ['']

describe('a fresh clone', () => {
  const [clone, home, dataDir] = [path.join(tempFolder(), 'clone'), tempFolder(), path.join(tempFolder(), 'data')]
  const command = path.join(home, 'bin', 'clusterdeck')
  // Never what this machine has installed.
  const settings = { ...env, npm_config_prefix: home, npm_config_prefer_offline: 'true', npm_config_audit: 'false',
    npm_config_update_notifier: 'false' }
  const ofDeck = { CLUSTERDECK_ADMIN_PORT: '0', CLUSTERDECK_DATA_DIR: dataDir, CLUSTERDECK_WORKERS: '1' }
  const shell = (line: string, more: Record<string, string> = {}) =>
    run('sh', ['-c', line], { cwd: clone, env: { ...settings, ...more }, timeout: PATIENCE_MS })
  before(() => copyTracked(clone))

  for (const words of [['status'], ['start', 'app.js'], ['start', 'app.js', '--no-keeper'], ['--version']]) {
    test(`says what to do where ${words.join(' ')} comes before that: it is to be built`, async () => {
      const failed = await run(process.execPath, [path.join(clone, 'server/cli.js'), ...words], { env: settings }).then(
        () => assert.fail('it ended well'),
        (error) => error
      )
      assert.deepEqual([failed.code, failed.stdout, failed.stderr], [1, '',
        `clusterdeck: it is not built: run "npm ci && npm install --global ." in ${clone}/\n`])
    })
  }

  test('is told to be installed in the same way wherever that is told', () => {
    for (const page of ['views/docs/getting-started.md', 'views/docs/deploying.md'])
      assert.ok(read(page).includes(`\n    ${installation}`), page)
    assert.ok(read('views/docs/getting-started.md').includes(`\`${runsInTheClone}\``))
  })

  rareTest('is a command after what the README says, with the npm of this machine', async () => {
    await shell(installation)
    assert.equal((await run(command, ['--version'], { env: settings })).stdout,
      `${JSON.parse(read('package.json')).version}\n`)
  })

  rareTest('runs an app by npx, and is stopped by the command that was installed', async () => {
    copyFileSync(path.join(ROOT, 'test/fixtures/answers-with-pid.js'), path.join(clone, 'app.js'))
    await startAndStop(runsInTheClone, { cwd: clone, env: { ...settings, ...ofDeck } },
      () => run(command, ['stop', '--data-dir', dataDir], { env: settings }))
  })

  rareTest('is a command with the other npm that people have, too', async (t) => {
    const { stdout: version } = await shell('npm --version')
    const [other, folder] = [version.startsWith('10.') ? '11' : '10', tempFolder()]
    const fetched = await shell(`npm install --prefix '${folder}' npm@${other}`).catch((error) => error)
    if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENOTCACHED/.test(fetched.stderr) && !process.env.CI)
      return t.skip('no registry can be reached')
    const withIt = { PATH: `${folder}/node_modules/.bin:${env.PATH}`, npm_config_prefix: path.join(home, other) }
    assert.equal((await shell('npm --version', withIt)).stdout.split('.')[0], other)
    const [packages, ...rest] = installation.split(' && ')
    // It reads the lock file; the packages are there already.
    await shell(packages, { ...withIt, npm_config_dry_run: 'true' })
    for (const line of rest) await shell(line, withIt)
    assert.equal(path.resolve(path.join(home, other, 'bin'), readlinkSync(path.join(home, other, 'bin/clusterdeck'))),
      path.join(home, other, 'lib/node_modules/clusterdeck/server/cli.js'))
    assert.equal((await run(path.join(home, other, 'bin/clusterdeck'), ['--version'], { env: settings })).stdout,
      `${JSON.parse(read('package.json')).version}\n`)
  })
})

function read (file: string) {
  return readFileSync(path.join(ROOT, file), 'utf8')
}

/** What a clone would have: also what is not committed yet. */
function copyTracked (folder: string) {
  const ignored = ['.git', ...read('.gitignore').trim().split('\n').map((line) => line.replace(/\/$/, ''))]
  // An app of a test that runs at the same time may have a socket beside its file, which comes and goes.
  const isKept = (file: string) => lstatSync(file, { throwIfNoEntry: false })?.isSocket() === false
  cpSync(ROOT, folder, { recursive: true,
    filter: (file) =>
      !ignored.includes(path.basename(file)) && !ignored.includes(path.relative(ROOT, file)) && isKept(file) })
}
