import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { isSecretsCommand } from '../../../server/releases/secrets-command.ts'
import { createSecretMask } from '../../../server/releases/secret-mask.ts'
import { readSecrets } from '../../../server/releases/secrets.ts'
import { tempFolder } from '../../support/folder.ts'
import { isGone } from '../../support/is-gone.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import { DeckError } from '../../../server/errors.ts'

/** What no message may have. */
const CANARY = 'canary-8Fz27'
const { PATH } = process.env

function run (script: string,
  { format = 'json', timeoutMs = 20_000, cwd = tempFolder() }: { format?: 'json' | 'env', timeoutMs?: number,
    cwd?: string } = {})
{
  return readSecrets({ from: 'command', command: ['sh', '-c', script, CANARY], format, timeoutMs }, { cwd,
    env: { PATH, INHERITED: 'it' } })
}

async function readText (text: string, format: 'json' | 'env') {
  const file = path.join(tempFolder(), 'secrets')
  writeFileSync(file, text)
  return await readSecrets({ from: 'file', file, format }, { cwd: '/', env: {} })
}

async function assertFails (reading: Promise<unknown>, message: RegExp) {
  await assert.rejects(reading, (error: DeckError) => {
    assert.equal(error.code, 'secrets-failed')
    assert.match(error.message, message)
    assert.doesNotMatch(error.message, new RegExp(CANARY))
    assert.equal(error.cause, undefined, 'a cause may quote what was read')
    return true
  })
}

describe('a command', () => {
  test('runs in its folder, with the variables of the app and none of ours, and what it writes to stdout is read', async () => {
    const cwd = tempFolder()
    process.env.OF_THIS_PROCESS = 'not for it'
    const values = await run(
      'printf \'{ "FOLDER": "%s", "INHERITED": "%s", "OTHER": "%s" }\' "$PWD" "$INHERITED" "$OF_THIS_PROCESS"; echo noise >&2',
      { cwd }
    )
    delete process.env.OF_THIS_PROCESS
    assert.deepEqual(values, { FOLDER: cwd, INHERITED: 'it', OTHER: '' })
  })

  test('that fails, is no program, or writes something else fails, and neither output nor arguments are told', async () => {
    await assertFails(run(`echo ${CANARY}; echo ${CANARY} >&2; exit 3`),
      /^secrets: expected sh to end with exit code 0, received exit code 3 after \d+ ms; what it has written is not shown, as it may hold secrets$/)
    await assertFails(run('kill -9 $$'), /received SIGKILL after/)
    await assertFails(run(`echo '{ "DB": "${CANARY}"'`),
      /^secrets: expected a JSON object of texts \(format: "json"\), received no JSON$/)
    await assertFails(run(':'), /received no JSON$/)
    await assertFails(run('echo "{}"'), /^secrets: expected at least one variable, received none$/)
    await assertFails(run(`echo '["${CANARY}"]'`), /expected a JSON object of texts, received something else$/)
    await assertFails(run(`printf 'A=${CANARY}\\377'`, { format: 'env' }), /expected UTF-8 text, received other bytes$/)
    await assertFails(run('yes', {}), /^secrets: expected sh to write at most 1048576 bytes, received more$/)
    const place = { cwd: tempFolder(), env: { PATH } }
    await assertFails(
      readSecrets({ from: 'command', command: ['no-such-program', CANARY], format: 'json', timeoutMs: 1000 }, place),
      /^secrets: expected no-such-program to start in \/.*, received ENOENT$/
    )
  })

  test('that takes too long is ended with all that it has started, and nobody else reaps it meanwhile', async () => {
    const cwd = tempFolder()
    const pids = path.join(cwd, 'pids')
    const reading = run(`echo '{}'; sleep 600 & echo $! $$ > ${pids}; wait`, { cwd, timeoutMs: 1000 })
    reading.catch(() => {})
    await until(() => existsSync(pids) && readFileSync(pids, 'utf8').endsWith('\n'), 'its start')
    const [sleeping, own] = readFileSync(pids, 'utf8').split(/\s/).map(Number)
    assert.ok(isSecretsCommand(own))
    await assertFails(reading,
      /^secrets: expected sh to end within 1 s \(option secrets\.timeoutMs\), received nothing by then$/)
    await until(() => [sleeping, own].every(isGone), 'the end of both')
    await until(() => !isSecretsCommand(own), 'that its end is seen')
  })

  test('that leaves a process behind with its output is not waited for', async () => {
    assert.deepEqual(await run('sleep 600 & echo \'{ "A": "1" }\''), { A: '1' })
  })
})

describe('variables', () => {
  test('are lines of NAME=value as well, with quotes and comments, and a byte order mark', async () => {
    const text = '\uFEFF# a comment\nexport ONE=1\r\n\nTWO="two\nlines" # more\nTHREE=\'a=b # c\'\n'
    assert.deepEqual(await readText(text, 'env'), { ONE: '1', TWO: 'two\nlines', THREE: 'a=b # c' })
    assert.deepEqual(await readText('\uFEFF{ "ONE": "1" }', 'json'), { ONE: '1' })
  })

  test('that are none are refused without showing what may be a value', async () => {
    await assertFails(readText(`A=1\nnot logged in, see ${CANARY}\n`, 'env'),
      /expected lines of NAME=value \(format: "env"\), received something else in line 2$/)
    await assertFails(readText(`-----BEGIN KEY-----\n${CANARY}==\n`, 'env'), /in line 1$/)
    await assertFails(readText(`https://x/?${CANARY}=1\n`, 'env'), /in line 1$/)
    await assertFails(readText(JSON.stringify({ [`${CANARY}=`]: '1' }), 'json'),
      /expected names of variables such as DB_PASSWORD, received one with other characters, or more than 200$/)
    await assertFails(readText(JSON.stringify({ DB_PORT: 5432 }), 'json'),
      /expected a text for DB_PORT, received a number: put it into quotes$/)
    await assertFails(readText(JSON.stringify({ DB: { PASSWORD: CANARY } }), 'json'),
      /expected a text for DB, received an object$/)
    await assertFails(readText(JSON.stringify({ DB: `${CANARY}\0` }), 'json'),
      /expected a text for DB, received one with a NUL$/)
  })

  for (const name of ['NODE_OPTIONS', 'LD_PRELOAD', 'DYLD_INSERT_LIBRARIES', 'PATH', 'BASH_ENV', 'CLUSTERDECK_TOKEN',
    'NOTIFY_SOCKET'])
  {
    test(`cannot set ${name}`, async () => {
      await assertFails(readText(JSON.stringify({ [name]: CANARY }), 'json'), new RegExp(`received ${name}$`))
    })
  }

  test('of an SDK that has LD in its name are like any other', async () => {
    assert.deepEqual(await readText('{ "LD_SDK_KEY": "sdk-1" }', 'json'), { LD_SDK_KEY: 'sdk-1' })
  })
})

describe('a file and a folder', () => {
  test('that are not there, no files or too large fail', async () => {
    const folder = tempFolder()
    const read = (file: string) => readSecrets({ from: 'file', file, format: 'json' }, { cwd: '/', env: {} })
    await assertFails(read(path.join(folder, 'none')),
      /^secrets: expected a file, received \/.*none, which cannot be read \(ENOENT\)$/)
    await assertFails(read(folder), /which is none$/)
    writeFileSync(path.join(folder, 'large'), Buffer.alloc(1024 * 1024 + 1))
    await assertFails(read(path.join(folder, 'large')), /which is larger than 1048576 bytes$/)
  })

  test('of systemd has a variable in each file, without a newline at its end', async () => {
    const folder = tempFolder()
    const read = (env = { CREDENTIALS_DIRECTORY: folder }) => readSecrets({ from: 'systemd-creds' }, { cwd: '/', env })
    await assertFails(read(), /at least one variable, received none$/)
    writeFileSync(path.join(folder, 'DB_PASSWORD'), `${CANARY}\n`)
    writeFileSync(path.join(folder, 'KEY'), 'two\nlines\n\n')
    assert.deepEqual(await read(), { DB_PASSWORD: CANARY, KEY: 'two\nlines\n' })
    writeFileSync(path.join(folder, 'db-password'), CANARY)
    await assertFails(read(),
      /^secrets: expected credentials with names of variables such as DB_PASSWORD, received "db-password"$/)
    await assertFails(read(fake({})),
      /expected CREDENTIALS_DIRECTORY in the environment of the app, as systemd sets it for LoadCredential=, received none$/)
    const other = tempFolder()
    mkdirSync(path.join(other, 'A'))
    await assertFails(read({ CREDENTIALS_DIRECTORY: other }), /A, which is none$/)
  })
})

describe('the mask', () => {
  test('takes values out of plain data, those of several lines line by line, and of two that begin alike the longer one', () => {
    const mask = createSecretMask()
    const told = { message: `no luck with ${CANARY}`,
      detail: { list: ['second-line-of-it', 5, null], other: `${CANARY}-and-more` } }
    assert.equal(mask.hide(told), told, 'as it is where there are no secrets')
    mask.add({ DB: CANARY, LONGER: `${CANARY}-and-more`, KEY: 'first-line-of-it\nsecond-line-of-it', SHORT: 'luck',
      SIGNS: '$&.*+?^(){}|[]\\/' })
    assert.deepEqual(mask.hide(told), { message: 'no luck with [DB]',
      detail: { list: ['[KEY]', 5, null], other: '[LONGER]' } })
    assert.equal(mask.hide('a $&.*+?^(){}|[]\\/ b'), 'a [SIGNS] b')
    assert.equal(
      mask.hide('git: https://t0ken@a.example/x https://u:p@ss@b/x ssh://git@c/x ssh://u:p@d git+https://t@e'),
      'git: https://…@a.example/x https://…@b/x ssh://git@c/x ssh://…@d git+https://…@e'
    )
    mask.add({ DB: 'its-next-value' })
    assert.equal(mask.hide(`${CANARY} its-next-value`), '[DB] [DB]')
  })
})
