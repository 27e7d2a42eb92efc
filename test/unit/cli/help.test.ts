import assert from 'node:assert/strict'
import test from 'node:test'
import { beforeSeparator } from '../../../server/cli/arguments.ts'
import { COMMAND_NAMES } from '../../../server/cli/command-words.ts'
import { alignTables, commandsOf, DeckCommand } from '../../../server/cli/help.ts'
import { createProgram, type Terminal } from '../../../server/cli/program.ts'
import { runCommandLine } from '../../../server/command-line.ts'
import { manualPage, manualPages } from '../../../server/manual.ts'
import { wordsOf } from '../../support/examples.ts'
import { fake } from '../../support/fake.ts'

async function cli (...argv: string[]) {
  const output = { stdout: '', stderr: '' }
  const stream = (name: 'stdout' | 'stderr') =>
    fake<NodeJS.WriteStream>({ isTTY: false, write: (text: string) => {
      output[name] += text
    } })
  const code = await runCommandLine(argv, { stdout: stream('stdout'), stderr: stream('stderr'), env: {}, cwd: '/' })
  return { code, ...output }
}

test('help lists the commands and the topics of the manual', async () => {
  for (const argv of [['help'], ['--help']]) {
    const { code, stdout, stderr } = await cli(...argv)
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^ {2}deploy /m)
    for (const { name, about } of manualPages())
      assert.match(stdout, new RegExp(`^  ${name} +${about.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`, 'm'))
  }
})

test('each block of words is a command, in the same order', async () => {
  const { commands } = await createProgram(['help'], fake({}), { exitCode: 0 })
  assert.deepEqual(commands.map((command) => command.name()), COMMAND_NAMES)
})

test('help of a topic prints its page', async () => {
  for (const { name, title } of manualPages()) {
    const { code, stdout } = await cli('help', `${name}.md`)
    assert.equal(code, 0)
    assert.ok(stdout.startsWith(`# ${title}\n`), name)
    assert.doesNotMatch(stdout, /<!--/)
  }
  assert.equal((await cli('help', 'getting-started')).stdout, alignTables(String(manualPage('getting-started'))))
})

test('a command comes before the page of its name, and says where that is', async () => {
  for (const argv of [['help', 'logs'], ['logs', '--help']]) {
    const { code, stdout } = await cli(...argv)
    assert.equal(code, 0)
    assert.match(stdout, /^Usage: clusterdeck logs .*--follow.*\nManual: clusterdeck help logs\.md\n$/s)
  }
  assert.doesNotMatch((await cli('help', 'scale')).stdout, /Manual:/)
})

test('help of every command ends with two or three examples, each a command line of it that the program takes', async () => {
  const commands = commandsOf(await createProgram(['help'], fake({}), { exitCode: 0 }))
  for (const { name, examples } of commands.map((command) => ({ name: command.name(), examples: command.examples }))) {
    const { stdout } = await cli(...(name === 'clusterdeck' ? [] : [name]), '--help')
    const [, text] = stdout.match(/\nExamples:\n((?: {2}.+\n)+)/) ?? []
    assert.equal(text, examples.map(([want, line]) => `  # ${want}\n  ${line}\n`).join(''))
    assert.ok(examples.length === 2 || examples.length === 3, name)
    for (const [, line] of examples)
      assert.equal(await commandThatTakes(line), name === 'clusterdeck' ? wordsOf(line)[0] : name, line)
  }
})

test('a command without examples is named to whoever has added it', () => {
  assert.throws(() => new DeckCommand('pause').examplesText(),
    /^Error: command "pause": expected two or three examples, received none$/)
})

test('help of what is neither is a usage error that names the nearest', async () => {
  for (const [topic, nearest] of [['deply', 'deploy'], ['getting-strated', 'getting-started'], ['log.md', 'logs']]) {
    assert.deepEqual(await cli('help', topic), { code: 2, stdout: '',
      stderr: `clusterdeck: help: no command or topic is called "${topic}" (did you mean "${nearest}"?)\n` })
  }
  assert.equal((await cli('help', '../../package')).code, 2)
})

test('tables line up in a terminal', () => {
  assert.equal(alignTables('text\n\n| a | b |\n| --- | --- |\n| `x \\| y` | long one |\n| z |  |\n\nmore'),
    'text\n\na        b\n-------  -\n`x | y`  long one\nz\n\nmore')
})

/** The name of the command that would run; nothing is run. `line`: of a shell. */
async function commandThatTakes (line: string) {
  const words = wordsOf(line)
  const ran = [] as string[]
  const program = await createProgram(words, { stderr: process.stderr } as unknown as Terminal, { exitCode: 0 })
  for (const command of program.commands)
    command.action(() => {
      ran.push(command.name())
    })
  await program.parseAsync(beforeSeparator(words), { from: 'user' })
  return ran.join()
}
