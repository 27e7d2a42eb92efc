import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { createInstallation } from '../../../server/systemd/installation.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { analyze, fakeSystemd, withoutAnalyze } from '../../support/fake-systemd.ts'
import { tempFolder } from '../../support/folder.ts'
import { play } from '../../support/transcript.ts'
import { rareTest } from '../../support/rare.ts'
import { fake } from '../../support/fake.ts'
import type { Systemctl } from '../../../server/systemd/systemctl.ts'

const { uid, username } = os.userInfo()

/** An app, and a service manager of its user. */
function setUp () {
  const cwd = tempFolder()
  const home = tempFolder()
  const units = path.join(home, 'systemd', 'user')
  const systemd = fakeSystemd()
  writeFileSync(path.join(cwd, 'package.json'), JSON.stringify({ name: 'shop', main: 'app.js' }))
  writeFileSync(path.join(cwd, 'app.js'), '')
  const run = (...words: string[]) => runCliHere(words, { cwd, env: { PATH: systemd.path, XDG_CONFIG_HOME: home } })
  /** Of the app, for its user. */
  const runHere = ([command, ...words]: string[]) => run(command, 'app.js', '--scope', 'user', ...words)
  return {
    cwd,
    units,
    systemd,
    file: path.join(units, 'shop.service'),
    list: () => existsSync(units) ? readdirSync(units).sort() : [],
    run,
    install: (...words: string[]) => runHere(['install', ...words]),
    /** What somebody types, and what systemd is told then. */
    says: (transcript: string) => play(transcript, runHere, systemd.calls)
  }
}

describe('clusterdeck install', { concurrency: true }, () => {
  test('writes the unit, enables and starts it; a second time it finds that so; uninstall takes it back', async () => {
    const { cwd, file, list, systemd, says } = setUp()
    systemd.linger()
    await says(`
      $ install --workers 3 -- --port 80
      shop.service is installed and runs: ${file}
        status     clusterdeck status --data-dir ${cwd}/.clusterdeck
        deploy     systemctl --user reload shop.service
        log        journalctl --user -u shop.service
        uninstall  clusterdeck uninstall --name shop --scope user
      > systemctl --user daemon-reload
      > systemctl --user enable shop.service
      > systemctl --user start shop.service`)
    const unit = readFileSync(file, 'utf8')
    assert.match(unit,
      new RegExp(
        `\nExecStart=${process.execPath} \\S+/cli\\.js start ${cwd}/app\\.js --workers 3 --logs-mirror on --data-dir ${cwd}/\\.clusterdeck -- --port 80\n`
      ))
    assert.match(unit, /\nWantedBy=default\.target\n/)
    assert.doesNotMatch(unit,
      /^(User|DynamicUser|StateDirectory|ProtectSystem|CapabilityBoundingSet|PrivateTmp|ReadWritePaths)=/m)
    await says(`
      $ install --workers 3 -- --port 80
      shop.service is already installed, and runs: ${file}
      …`)
    assert.equal(readFileSync(file, 'utf8'), unit)
    await says(`
      $ uninstall
      shop.service is stopped and removed: ${file}
      > systemctl --user disable --now shop.service
      > systemctl --user daemon-reload
      $ uninstall
      shop.service is not installed for this user (for the system: --scope system)`)
    assert.deepEqual([list(), systemd.isActive], [[], false])
  })

  test('--dry-run prints the unit and the commands, and does nothing, also where there is no systemd', async () => {
    const { list, systemd, file, install, says } = setUp()
    systemd.failAt('show', 'System has not been booted with systemd')
    await says(`
      $ install --dry-run --socket 3000
      # ${file}
      # Written by "clusterdeck install"; "clusterdeck uninstall" takes it back.
      [Unit]
      …
      # then
      # systemctl --user daemon-reload
      # systemctl --user enable shop.service shop.socket
      # systemctl --user start shop.socket shop.service`)
    assert.deepEqual(list(), [])
    systemd.failAt('show', null)
    await install('--socket', '3000')
    systemd.calls()
    await says(`
      $ uninstall --dry-run
      systemctl --user disable --now shop.service shop.socket
      systemctl --user daemon-reload
      rm ${file}
      rm ${file.replace('.service', '.socket')}`)
    assert.equal(list().length, 2)
  })

  test('the service of a package keeps its place, unless it is forced', async () => {
    const [folder, ofPackages, files] = [tempFolder(), tempFolder(), [{ file: 'ssh.service', text: '' }]]
    writeFileSync(path.join(ofPackages, 'ssh.service'), '')
    const systemctl = fake<Systemctl>({ isActive: async () => true, order: async () => {}, line: String,
      logLine: String })
    const { install } = createInstallation({ folder, systemctl, ofOthers: [ofPackages] })
    await assert.rejects(install('ssh', files), { code: 'not-possible',
      message: /ssh\.service is a service of another program, in whose place this one would run/ })
    assert.deepEqual([readdirSync(folder), await install('ssh', files, { isForced: true })], [[], 'installed'])
  })

  test('other units of its name stay, unless it is forced; a socket that is wanted no more goes then', async () => {
    const { file, list, units, systemd, says } = setUp()
    systemd.linger()
    mkdirSync(units, { recursive: true })
    writeFileSync(file, '[Service]\nExecStart=/bin/true\n')
    await says(`
      $ install
      ! clusterdeck: ${units} has other units of this name already: shop.service; --force replaces them, --name gives another name
      = 1
      $ uninstall
      ! clusterdeck: ${file}: not written by "clusterdeck install"; --force removes it all the same
      = 1`)
    assert.equal(readFileSync(file, 'utf8'), '[Service]\nExecStart=/bin/true\n')
    await says(`
      $ install --force --socket 3000
      shop.service is replaced and runs: ${file}
      …`)
    assert.deepEqual(list(), ['shop.service', 'shop.socket'])
    await says(`
      $ install
      ! clusterdeck: ${units} has other units of this name already: …
      = 1
      $ install --force
      shop.service is replaced and runs: ${file}
      …
      > systemctl --user restart shop.service`)
    assert.deepEqual(list(), ['shop.service'])
  })

  for (const verb of ['daemon-reload', 'enable', 'start']) {
    const testIt = verb === 'start' ? test : rareTest
    testIt(`after a failure at "${verb}" nothing is left`, async () => {
      const { list, systemd, install, says } = setUp()
      systemd.failAt(verb, 'Job for shop.service failed because\nthe control process exited')
      await says(`
        $ install
        ! clusterdeck: systemctl --user ${verb}… failed: Job for shop.service failed because the control process exited; nothing is installed, everything is as it was before; journalctl --user -u shop.service says more
        …
        > systemctl --user disable --now shop.service
        …
        = 1`)
      assert.deepEqual([list(), systemd.isActive], [[], false])
      systemd.failAt(verb, null)
      assert.equal((await install()).code, 0)
    })
  }

  test('after a failure to replace it what was there before is back, and runs', async () => {
    const { file, systemd, install, says } = setUp()
    await install()
    systemd.calls()
    const before = readFileSync(file, 'utf8')
    systemd.failAt('enable', 'no')
    await says(`
      $ install --force --workers 9
      ! clusterdeck: …
      …
      > systemctl --user daemon-reload
      > systemctl --user reset-failed shop.service
      > systemctl --user restart shop.service
      = 1`)
    assert.equal(readFileSync(file, 'utf8'), before)
    assert.ok(systemd.isActive)
  })

  rareTest('one that cannot be stopped stays installed', async () => {
    const { list, systemd, install, says } = setUp()
    await install()
    systemd.calls()
    systemd.failAt('disable', 'Failed to connect to bus')
    await says(`
      $ uninstall
      ! clusterdeck: systemctl --user disable --now shop.service failed: Failed to connect to bus
      > systemctl --user disable --now shop.service
      = 1`)
    assert.deepEqual(list(), ['shop.service'])
  })

  test('a deck that runs already is in the way, one that systemd runs is not', async () => {
    const { cwd, list, install } = setUp()
    mkdirSync(path.join(cwd, '.clusterdeck'), { mode: 0o700 })
    const announce = (pid: number) =>
      writeFileSync(path.join(cwd, '.clusterdeck', 'master.json'),
        JSON.stringify({ pid, adminUrl: 'http://127.0.0.1:9777', startedAt: '' }))
    announce(process.pid)
    assert.deepEqual(await install(), { code: 1, stdout: '',
      stderr:
        `clusterdeck: a deck (pid ${process.pid}) already runs on ${cwd}/.clusterdeck: first run "clusterdeck stop --data-dir ${cwd}/.clusterdeck"\n` })
    assert.deepEqual(list(), [])
    for (const pid of [2 ** 22 + 1, process.pid]) {
      announce(pid)
      assert.equal((await install()).code, 0)
    }
  })

  test('says how it starts at boot, unless it does already', async () => {
    const { systemd, install } = setUp()
    assert.equal((await install()).stderr,
      `clusterdeck: it starts when ${username} logs in and ends with the last session; to start it at boot: loginctl enable-linger ${username}\n`)
    systemd.linger()
    assert.equal((await install()).stderr, '')
  })

  test('without systemd, or without its command, it says so', async () => {
    const { list, systemd, says, cwd } = setUp()
    systemd.failAt('show', 'Failed to connect to bus: No medium found')
    await says(`
      $ install
      ! clusterdeck: no systemd to ask here: Failed to connect to bus: No medium found; a service manager of one's own is there after a login of its user, not after su or sudo
      = 1`)
    const { code, stderr } = await runCliHere(['install', '--scope', 'user'], { cwd, env: { PATH: '/nowhere' } })
    assert.deepEqual([code, stderr.split(';')[0]], [1, 'clusterdeck: no systemd to ask here: systemctl was not found'])
    assert.deepEqual(list(), [])
  })

  test('a place that cannot be written is said, and nothing is done', async () => {
    const { cwd, systemd } = setUp()
    const file = path.join(tempFolder(), 'no-folder')
    writeFileSync(file, '')
    for (const [home, reason] of [[file, 'ENOTDIR'],
      ...(process.platform === 'linux' ? [['/proc/nothing', 'ENOENT']] : [])])
    {
      const { code, stderr } = await runCliHere(['install', '--scope', 'user'], { cwd,
        env: { PATH: systemd.path, XDG_CONFIG_HOME: home } })
      assert.equal(code, 1)
      assert.match(stderr, new RegExp(`^clusterdeck: /.*: expected a place for unit files, received ${reason}\n$`))
    }
    assert.deepEqual(systemd.calls().filter((line) => / (enable|start) /.test(line)), [])
  })

  test('by default root installs for the machine, and anybody else for themselves', async () => {
    const { run, cwd } = setUp()
    const { stdout } = await run('install', 'app.js', '--dry-run')
    assert.match(stdout, uid === 0 ? /^# \/etc\/systemd\/system\/shop\.service\n/ : /\/systemd\/user\/shop\.service\n/)
    const system = (await run('install', 'app.js', '--dry-run', '--scope', 'system')).stdout
    assert.match(system, /\nProtectSystem=strict\n/)
    assert.match(system, /\nWantedBy=multi-user\.target\n/)
    assert.match(system, / --data-dir %S\/shop\n/)
    assert.match((await run('uninstall', '--dry-run', '--scope', 'system', '--name', 'no-such-service-here')).stdout,
      /is not installed for the system/)
    assert.ok(!existsSync(path.join(cwd, '.clusterdeck')))
  })

  test('who is not root is told that the machine is root\'s', {
    skip: uid !== 0 && 'only root can become somebody else'
  }, () => {
    const { cwd, systemd } = setUp()
    chmodSync(cwd, 0o755)
    const program = `
      const { installCommand } = await import(${
      JSON.stringify(new URL('../../../server/cli/install.ts', import.meta.url).href)
    })
      const place = { cwd: ${JSON.stringify(cwd)}, script: '/cli.js', env: process.env, stderr: process.stderr }
      // It loads the rest of its files, which others may not be allowed to read.
      await installCommand({ scope: 'system', entry: 'app.js', dryRun: true }, { ...place, stdout: { write () {} } })
      process.setuid(54321)
      await installCommand({ scope: 'system', entry: 'app.js' }, { ...place, stdout: process.stdout }).catch(({ message }) => console.log(message))`
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8',
      env: { ...process.env, PATH: systemd.path } })
    assert.equal(stdout, '--scope system: expected root, received the user 54321; use sudo, or --scope user\n')
  })

  test('a wrong option is one clear line, and installs nothing', async () => {
    const { list, run } = setUp()
    await play(`
      $ install app.js --scope all
      !! --scope: expected one of system, user, received "all"
      $ install app.js --scope user --user web
      !! --user: expected nothing with --scope user, where the service runs as its owner, received "web"
      $ install app.js --name a/b
      !! --name: expected a name of letters, digits and . _ -, received "a/b"`, (words) => run(...words))
    assert.deepEqual(list(), [])
  })

  rareTest('without an entry it is about the host, with what is said of the host', async () => {
    const { units, run, systemd, list } = setUp()
    const first = await run('install', '--scope', 'user', '--admin-port', '9800', '--no-keeper')
    assert.equal(first.code, 0, first.stderr)
    const file = path.join(units, 'clusterdeck.service')
    assert.equal(first.stdout,
      `clusterdeck.service is installed and runs: ${file}\n  apps       clusterdeck ls\n  log        journalctl --user -u clusterdeck.service\n  uninstall  clusterdeck uninstall --scope user\n`)
    assert.deepEqual(systemd.calls(), ['systemctl --user daemon-reload', 'systemctl --user enable clusterdeck.service',
      'systemctl --user start clusterdeck.service'])
    const unit = readFileSync(file, 'utf8')
    assert.match(unit, new RegExp(`\nExecStart=${process.execPath} \\S+/cli\\.js host --admin-port 9800 --no-keeper\n`))
    assert.match(unit, new RegExp(`\nEnvironment="?CLUSTERDECK_HOST_DIR=${process.env.CLUSTERDECK_HOST_DIR}"?\n`))
    assert.match(unit, /\nWantedBy=default\.target\n/)
    assert.match(unit, /\nType=notify\nExecReload=\/bin\/kill -HUP \$MAINPID\n(#.*\n)*NotifyAccess=all\n/)
    assert.deepEqual(
      ['WatchdogSec', 'TimeoutStartSec', 'TimeoutStopSec', 'KillMode', 'Restart', 'FileDescriptorStoreMax',
        'FileDescriptorStorePreserve'].map((key) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1]),
      ['30', '90', '300', 'mixed', 'on-failure', '16384', 'restart']
    )
    assert.doesNotMatch(unit, /^User=/m)
    assert.equal((await run('uninstall', '--scope', 'user')).stdout,
      `clusterdeck.service is stopped and removed: ${file}\n`)
    assert.deepEqual(list(), [])
    const system = await run('install', '--scope', 'system', '--user', 'web', '--dry-run')
    assert.match(system.stdout, /\nUser=web\n(.*\n)*WantedBy=multi-user\.target\n/)
    assert.doesNotMatch(system.stdout, /^Environment=/m)
    // What is said of an app means the app of this folder.
    assert.match((await run('install', '--scope', 'user', '--workers', '3', '--dry-run')).stdout,
      / start \S+\/app\.js --workers 3 /)
  })

  test('a host that runs already is in the way of its unit', async (t) => {
    const { env } = await startFakeHost(t, { shop: {} })
    const { systemd, cwd, list } = setUp()
    const { code, stderr } = await runCliHere(['install', '--scope', 'user'], { cwd,
      env: { ...env, PATH: systemd.path, XDG_CONFIG_HOME: tempFolder() } })
    assert.deepEqual([code, stderr], [1,
      `clusterdeck: the host (pid ${process.pid}) already runs: first run "clusterdeck down --all"; the unit brings its apps back\n`])
    assert.deepEqual(list(), [])
  })

  test('systemd itself finds nothing to object to in the unit of a host', { skip: withoutAnalyze }, async () => {
    const { units, run } = setUp()
    await run('install', '--scope', 'user')
    assert.deepEqual(analyze(['clusterdeck.service'], { cwd: units, flags: ['--user'] }), [])
  })

  test('systemd itself finds nothing to object to in the unit of a user', { skip: withoutAnalyze }, async () => {
    const { units, install } = setUp()
    await install('--socket', '3000', '--data-dir', 'the data')
    assert.deepEqual(analyze(['shop.service', 'shop.socket'], { cwd: units, flags: ['--user'] }), [])
  })
})
