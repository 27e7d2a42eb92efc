import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import { listedPath, quotedProgram, quotedWord, wholeLine } from '../../../server/systemd/unit-quoting.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { analyze, withoutAnalyze } from '../../support/fake-systemd.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'
import { rows } from '../../support/rows.ts'

/** A folder with an app. */
function folderWith (
  { app = 'app.js', packageName, files = {} }: { app?: string, packageName?: string, files?: Record<string, string> } =
    {}
) {
  const cwd = tempFolder()
  writeFiles(cwd, { [app]: '', ...(packageName && { 'package.json': JSON.stringify({ name: packageName, main: app }) }),
    ...files })
  return cwd
}

/** @returns its values */
function settings (unit: string, key: string): string[] {
  return unit.split('\n').filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1))
}

/** @returns the unit that is printed for an app of such a folder */
async function unitFor (words: string[], cwd: string = folderWith()): Promise<string> {
  return (await runCliHere(['systemd', ...words], { cwd })).stdout
}

/** `text`: what was printed for a service with sockets */
function split (text: string) {
  const [, name, service, socket] = /^# (.+)\.service\n(.*)\n# \1\.socket\n(.*)$/s.exec(text) ?? []
  return { name, service, socket }
}

describe('clusterdeck systemd', { concurrency: true }, () => {
  test('prints a unit that starts this app as it is started here, with absolute paths and the options that were given', async () => {
    const cwd = folderWith({ packageName: '@acme/web shop', files: { 'other/deck.json': '{}' } })
    const { code, stdout, stderr } = await runCliHere(['systemd', '--workers', '4', '--config', 'other/deck.json',
      '--exec-argv', '--max-old-space-size=512', '--no-keeper', '--user', 'web', '--', '--port', '$HOME'], { cwd })
    assert.deepEqual([code, stderr], [0, ''])
    const [command] = settings(stdout, 'ExecStart')
    assert.match(command, new RegExp(`^${process.execPath} /.*/server/cli\\.js start ${cwd}/app\\.js `))
    assert.ok(
      command.endsWith(
        ` --config ${cwd}/other/deck.json --workers 4 --exec-argv --max-old-space-size=512 --no-keeper --logs-mirror on --data-dir %S/acme-web-shop -- --port "$$HOME"`
      ),
      command
    )
    assert.deepEqual(
      ['Type', 'NotifyAccess', 'WorkingDirectory', 'User', 'StateDirectory', 'KillMode', 'ProtectSystem',
        'FileDescriptorStoreMax', 'FileDescriptorStorePreserve'].map((key) => settings(stdout, key)),
      [['notify'], ['all'], [cwd], ['web'], ['acme-web-shop'], ['mixed'], ['strict'], ['16384'], ['restart']]
    )
    assert.deepEqual(settings(stdout, 'MemoryDenyWriteExecute'), [])
    assert.doesNotMatch(stdout, /\.socket/)
  })

  test('repeats the workers\' output for the journal, unless an option or the config file says otherwise', async () => {
    assert.match(settings(await unitFor(['app.js']), 'ExecStart')[0], / --logs-mirror on --data-dir /)
    const asked = await unitFor(['app.js', '--logs-mirror', 'off'])
    assert.match(settings(asked, 'ExecStart')[0], / --logs-mirror off --data-dir /)
    assert.doesNotMatch(asked, /--logs-mirror on/)
    for (const mirror of ['off', 'auto']) {
      const cwd = folderWith({ files: { 'clusterdeck.config.json': JSON.stringify({ logs: { mirror } }) } })
      const { stdout } = await runCliHere(['systemd', 'app.js'], { cwd, env: { CLUSTERDECK_LOGS_MIRROR: 'on' } })
      assert.doesNotMatch(stdout, /--logs-mirror/, mirror)
    }
  })

  test('takes the times to wait from the configuration, without the environment of the shell', async () => {
    const cwd = folderWith({
      files: { 'clusterdeck.config.json': '{"drain": {"deadlineMs": 120500}, "ready": {"timeoutMs": 300000}}' }
    })
    const { stdout } = await runCliHere(['systemd', 'app.js', '--stop-term-grace-ms', '2000'], { cwd,
      env: { CLUSTERDECK_DRAIN_DEADLINE_MS: '1' } })
    assert.deepEqual([settings(stdout, 'TimeoutStopSec'), settings(stdout, 'TimeoutStartSec')], [['138'], ['330']])
  })

  test('with --socket prints a socket unit that belongs to it', async () => {
    const { name, service, socket } = split(
      await unitFor(['app.js', '--name', 'shop', '--socket', '3000', '--socket', '[::1]:3001', '--socket',
        '/run/shop app.sock', '--notify-reload'])
    )
    assert.equal(name, 'shop')
    assert.deepEqual(settings(socket, 'ListenStream'), ['3000', '[::1]:3001', '/run/shop app.sock'])
    assert.deepEqual([settings(service, 'Requires'), settings(service, 'Also'), settings(service, 'Type'),
      settings(service, 'ExecReload')], [['shop.socket'], ['shop.socket'], ['notify-reload'], []])
  })

  test('one of several apps is started after those that it depends on, and a deck is called as its unit', async () => {
    const cwd = folderWith({
      files: {
        'clusterdeck.config.json':
          '{ "apps": { "shop": { "entry": "app.js" }, "cron": { "entry": "app.js" }, "mail": { "entry": "app.js", "dependsOn": ["shop", "cron"] } } }'
      }
    })
    const mail = await unitFor(['--app', 'mail', '--scope', 'user'], cwd)
    assert.deepEqual([settings(mail, 'After'), settings(mail, 'Wants')], [['shop.service cron.service'], [
      'shop.service cron.service'
    ]])
    const shop = await unitFor(['--app', 'shop', '--name', 'store', '--scope', 'user'], cwd)
    assert.deepEqual([settings(shop, 'After'), settings(shop, 'Wants')], [[], []])
    assert.doesNotMatch(settings(shop, 'ExecStart')[0], /--name/)
    assert.match(settings(await unitFor(['app.js', '--name', 'store']), 'ExecStart')[0], / --name store /)
  })

  test('what is looked up at each start is named as it was, not what it comes to now', async () => {
    const cwd = folderWith({ files: { 'package.json': '{ "name": "shop", "scripts": { "serve": "node app.js" } }' } })
    const exec = async (words: string[]) => settings(await unitFor(words, cwd), 'ExecStart')[0]
    assert.match(await exec(['npm', '--', 'run', 'serve']), / start npm .* -- run serve$/)
    assert.match(await exec(['--script', 'serve']), / start --script serve .*%S\/shop$/)
  })

  test('a data folder of one\'s own may be written, and an app at home can be read', async () => {
    const cwd = folderWith()
    const own = await unitFor(['app.js', '--data-dir', 'the data'], cwd)
    assert.deepEqual([settings(own, 'ReadWritePaths'), settings(own, 'StateDirectory')], [[`"${cwd}/the data"`], []])
    assert.match(settings(own, 'ExecStart')[0], / --data-dir ".*\/the data"$/)
    assert.deepEqual(settings(await unitFor(['app.js', '--data-dir', '/home/ann/data']), 'ProtectHome'), ['read-only'])
  })

  test('root has to name root: the service gets a user of its own, or whoever asks', async () => {
    const unit = await unitFor(['app.js'])
    const { uid, username } = os.userInfo()
    assert.deepEqual([settings(unit, 'DynamicUser'), settings(unit, 'User')],
      uid === 0 ? [['yes'], []] : [[], [username]])
  })

  for (const [words, message] of rows(`
no-such.js                                | entry: expected a file, received .*no-such\\.js, which does not exist
app.js,--socket,70000                     | --socket: expected a port, an address .*, received "70000"
app.js,--socket,localhost:3000            | --socket: expected .*, received "localhost:3000"
app.js,--socket,/run/a\\nExecStart=/bin/sh  | --socket: expected no line breaks .*, received "/run/a\\\\nExecStart=/bin/sh"
app.js,--user,web;id                      | --user: expected the name or number of a user, received "web;id"
app.js,--name,a/b                         | --name: expected a name of letters, digits and \\. _ -, received "a/b"
app.js,--workers,three                    | --workers: expected .*, received "three"
app.js,--worker,3                         | .*--workers.*
app.js,--,two\\nlines                     | an argument of the app: expected no line breaks .*, received "two\\\\nlines"`)) {
    test(`${words}: one clear line, exit code 2`, async () => {
      const { code, stdout, stderr } = await runCliHere(['systemd', ...words.replaceAll('\\n', '\n').split(',')], {
        cwd: folderWith()
      })
      assert.match(stderr, new RegExp(`^clusterdeck: ${message}\n$`))
      assert.deepEqual([code, stdout], [2, ''])
    })
  }

  test('systemd itself finds nothing to object to', { skip: withoutAnalyze }, async () => {
    const cwd = folderWith({ app: 'an odd %n folder/it\'s "$HOME".js' })
    const { stdout } = await runCliHere(['systemd', 'an odd %n folder/it\'s "$HOME".js', '--name', 'odd', '--user',
      'daemon', '--socket', '3000', '--', 'a b', ';', '%n', '\\', ''], { cwd: path.join(cwd) })
    const { service, socket } = split(stdout)
    writeFileSync(path.join(cwd, 'odd.service'), service)
    writeFileSync(path.join(cwd, 'odd.socket'), socket)
    assert.deepEqual(analyze(['odd.service', 'odd.socket'], { cwd }), [])
  })
})

describe('quoting for systemd', () => {
  for (const [text, word] of Object.entries({ '--workers': '--workers', '/srv/app/app.js': '/srv/app/app.js',
    'a b': '"a b"', '50%': '50%%', $HOME: '"$$HOME"', 'say "hi"': '"say \\"hi\\""', 'back\\slash': '"back\\\\slash"',
    'it\'s': '"it\'s"', ';': '";"', '': '""', é: '"é"' }))
    test(`a word: ${JSON.stringify(text)}`, () => assert.equal(quotedWord('it', text), word))

  test('a program, in which no variable is looked for', () => {
    assert.equal(quotedProgram('/opt/no de$%/bin'), '"/opt/no de$%%/bin"')
  })

  test('a setting that takes its whole line has no quotes', () => {
    assert.equal(wholeLine('it', '/srv/an "app" 50% $HOME'), '/srv/an "app" 50%% $HOME')
    assert.equal(listedPath('it', '/srv/a b'), '"/srv/a b"')
  })

  const refused = { 'a line break': () => quotedWord('it', 'a\nb'), 'a tab': () => wholeLine('it', 'a\tb'),
    'a space at the end of a line': () => wholeLine('it', '/srv/app '),
    'a backslash at the end of a line': () => wholeLine('it', '/srv/app\\'),
    'a quote in a list of paths': () => listedPath('it', '/srv/"app"') }
  for (const [what, quote] of Object.entries(refused))
    test(`${what} is refused, as no unit file can hold it`, () => assert.throws(quote, { code: 'invalid-config' }))
})
