import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { createProgram } from '../../../server/cli/program.ts'
import { manualPages } from '../../../server/manual.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { ASK } from '../../support/completion.ts'
import { CLI } from '../../support/deck.ts'
import { writeRecord } from '../../support/records.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'

/** All options, those of `start` too. */
const program = await createProgram(['completion'], fake({}), { exitCode: 0 })
const names = program.commands.map((command) => command.name())

for (const [shell, ask] of Object.entries(ASK)) {
  const isMissing = spawnSync(shell, ['-c', 'exit 0']).error !== undefined

  test(`${shell} completes every command and every option of the program`, { skip: isMissing }, async () => {
    const { stdout } = await runCliHere(['completion', shell])
    const commands = [program, ...program.commands]
    const answers = ask(stdout, ['clusterdeck ', ...commands.map((command) =>
      `clusterdeck ${command === program ? '' : `${command.name()} `}--`
    )])
    assert.deepEqual(answers[0].sort(), names.toSorted())
    for (const [index, command] of commands.entries()) {
      const flags = command.createHelp().visibleOptions(command).map(({ long }) => String(long))
      assert.ok(flags.includes('--help'))
      assert.deepEqual(answers[index + 1].filter((word) => word.startsWith('--')).sort(), flags.sort(), command.name())
    }
  })

  test(`${shell} completes the values of options and arguments: choices, files, nothing`, { skip: isMissing },
    async () => {
      const { stdout } = await runCliHere(['completion', shell])
      const expected = Object.entries({ 'deploy --on-failure ': ['hold', 'rollback'],
        'deploy --on-failure=ro': ['rollback'], 'diagnose 5 --kind heap-s': ['heap-snapshot', 'heap-statistics'],
        'start -w ': ['max'], 'systemd app.js --dispatch ': ['shared', 'sticky'], 'status --token-file ': ['files'],
        'deploy --note ': [], 'start --ready-path ': [], 'start ': ['files'], 'completion ': ['bash', 'fish', 'zsh'],
        'help ': [...names, ...manualPages().map(({ name }) => `${name}.md`)].sort(), 'scale ': [] })
      const answers = ask(stdout, expected.map(([line]) => `clusterdeck ${line}`))
      for (const [index, [line, words]] of expected.entries()) {
        assert.deepEqual(answers[index].map((word) => word.replace(/^--[\w-]+=/, '')).sort(), words, line)
      }
    })
}

test('offers the apps of the host, several of them, and nothing where there is none', async () => {
  const folder = tempFolder()
  const before = process.env.CLUSTERDECK_HOST_DIR
  process.env.CLUSTERDECK_HOST_DIR = folder
  try {
    const { stdout } = await runCliHere(['completion', 'bash'])
    const script = `clusterdeck() { '${process.execPath}' '${CLI}' "$@"; }\n${stdout}`
    const lines = ['clusterdeck restart ', 'clusterdeck restart shop m', 'clusterdeck logs --since ']
    assert.deepEqual(ASK.bash(script, lines), [[], [], []])
    for (const name of ['shop', 'mail']) writeRecord(folder, { name, dataDir: folder, order: { cwd: folder } })
    assert.deepEqual(ASK.bash(script, lines), [['mail', 'shop'], ['mail'], []])
  } finally {
    if (before === undefined) delete process.env.CLUSTERDECK_HOST_DIR
    else process.env.CLUSTERDECK_HOST_DIR = before
  }
})

test('a shell that it knows nothing of is refused', async () => {
  assert.deepEqual(await runCliHere(['completion', 'csh']), { code: 2, stdout: '',
    stderr: 'clusterdeck: completion: expected one of bash, zsh, fish, received "csh" (did you mean "zsh"?)\n' })
})
