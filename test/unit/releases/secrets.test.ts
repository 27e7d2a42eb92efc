import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { isSecretsCommand } from '../../../server/releases/secrets-command.ts'
import { createSecretMask } from '../../../server/releases/secret-mask.ts'
import { readSecrets } from '../../../server/releases/secrets.ts'
import { tempFolder } from '../../support/folder.ts'
import { assertRetold } from '../../support/golden.ts'
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
})

test('secrets are read as they stand, or refused without showing what may be one', async () => {
  const escapes: Record<string, string> = { n: '\n', r: '\r', uFEFF: '\uFEFF' }
  await assertRetold(import.meta, 'secrets', async (given) => {
    const [, how, text] = /^(\S+) (.*)$/.exec(given) ?? []
    const format = how.endsWith('env') ? 'env' : 'json'
    const content = text.replace(/\\(n|r|uFEFF)/g, (_, name) => escapes[name]).replaceAll('\\\\', '\\')
    const reading = how.startsWith('sh') ? run(text, { format }) : readText(content, format)
    return await reading.catch(({ code, message, cause }) => {
      assert.deepEqual([code, cause, message.includes(CANARY)], ['secrets-failed', undefined, false])
      return message.replace(/after \d+ ms/, 'after … ms')
    })
  })
})

test('a command that is no program is told by its name', async () => {
  await assertFails(
    readSecrets({ from: 'command', command: ['no-such-program', CANARY], format: 'json', timeoutMs: 1000 }, {
      cwd: tempFolder(),
      env: { PATH }
    }),
    /^secrets: expected no-such-program to start in \/.*, received ENOENT$/
  )
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
