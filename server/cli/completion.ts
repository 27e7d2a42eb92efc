import { attempt } from '../errors.ts'
import { manualPages } from '../manual.ts'
import { recordedApps } from './known-apps.ts'
import { checkedWord } from './usage.ts'
import type { Command } from 'commander'
import type { Terminal } from './program.ts'

/**
 * Completion scripts, made from the program's own commands. The hint that help shows tells which values an option
 * takes:
 * `<shared|sticky>` is one of these, `<file>`, `<folder>` and `<path>` are files.
 */
/** an empty list: any text; apps: those of the host of this user, looked up when the shell asks */
type Values = string[] | 'files' | 'apps'
/** `values`: null for a switch */
type Flag = { flags: string[], about: string, values: Values | null, isRepeatable: boolean }
/** `values`: of its argument, null without one; `isRepeated`: it takes several */
type Entry = { name: string, about: string, flags: Flag[], values: Values | null, isRepeated: boolean }

const SCRIPTS: Readonly<Record<string, (entries: Entry[]) => string>> = Object.freeze({ bash: bashScript,
  zsh: zshScript, fish: fishScript })
const SHELLS = Object.keys(SCRIPTS)
const FILE_HINTS = ['entry', 'file', 'folder', 'path']
/** What a script runs to learn the names of apps. */
const APPS = 'apps'
const LOOK_UP = `clusterdeck completion ${APPS} 2> /dev/null`
/** In a hint such as `n|max`, this stands for a number and is no value itself. */
const NUMBER = /^n%?$/
/** A quote inside of a single-quoted word. */
const POSIX_QUOTE = '\'\\\'\''
const FISH_QUOTE = '\\\''

export function printCompletion (program: Command, shell: string, { stdout, env }: Pick<Terminal, 'stdout' | 'env'>) {
  if (shell !== APPS) return stdout.write(completionScript(program, shell))
  // Whatever goes wrong, somebody who presses Tab wants no error.
  stdout.write(attempt(() => recordedApps(env).map(({ name }) => `${name}\n`).join(''), ''))
}

/** @throws {DeckError} usage */
function completionScript (program: Command, shell: string) {
  checkedWord('completion', SHELLS, shell)
  const commands = program.commands.map(toEntry)
  const topics = [...commands.map(({ name }) => name), ...manualPages().map(({ name }) => `${name}.md`)]
  for (const command of commands) if (command.name === 'help') command.values = topics
  return SCRIPTS[shell]([toEntry(program), ...commands])
}

function toEntry (command: Command): Entry {
  const [argument] = command.registeredArguments
  const { variadic: isRepeated = false } = argument ?? {}
  return { name: command.name(), about: command.description(),
    flags: command.createHelp().visibleOptions(command).map(({ short, long, flags, description, parseArg }) => ({
      flags: [short, long].filter((flag) => flag !== undefined),
      about: description.replace(/ \((?:default|env|separated)\b.*$/, ''),
      values: flags.includes('<') ? valuesOf(flags.slice(flags.indexOf('<') + 1, -1)) : null,
      isRepeatable: parseArg !== undefined
    })), values: argument ? valuesOf(argument.name()) : null, isRepeated }
}

function valuesOf (hint: string): Values {
  if (FILE_HINTS.includes(hint)) return 'files'
  if (hint === 'app') return 'apps'
  return hint.includes('|') ? hint.split('|').filter((word) => !NUMBER.test(word)) : []
}

/** The script also runs in bash 3.2, which macOS has. `entries`: the first one is the program itself. */
function bashScript ([program, ...commands]: Entry[]) {
  return `# bash completion of ${program.name}
_${program.name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command='' words='' index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    # What follows is for the app.
    if [[ \${COMP_WORDS[index]} == -- ]]; then return; fi
    if [[ -z $command && \${COMP_WORDS[index]} != -* ]]; then command=\${COMP_WORDS[index]}; fi
  done
  # --option=value comes as three words.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case $command in
${bashCase({ ...program, name: '\'\'', values: commands.map(({ name }) => name) })}
${commands.map(bashCase).join('\n')}
  esac
  # Without it, files are offered.
  compopt +o default 2> /dev/null
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _${program.name} ${program.name}
`
}

function bashCase ({ name, flags, values }: Entry) {
  const all = flags.flatMap(({ flags }) => flags).join(' ')
  return [`  ${name})`, '    case $previous in',
    ...flags.filter(({ values }) => values !== null).map(({ flags, values }) =>
      `      ${flags.join(' | ')}) ${bashWords(values)} ;;`
    ), `      *) if [[ $current == -* ]]; then words='${all}'; else ${bashWords(values)}; fi ;;`, '    esac ;;'].join(
      '\n'
    )
}

function bashWords (values: Values | null) {
  if (values === 'apps') return `words=$(${LOOK_UP})`
  return values === 'files' ? 'return' : `words='${values?.join(' ') ?? ''}'`
}

/** `entries`: the first one is the program itself */
function zshScript ([program, ...commands]: Entry[]) {
  return `#compdef ${program.name}
_${program.name}() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands=(
${commands.map(({ name, about }) => `    ${quoteForShell(`${name}:${about}`, POSIX_QUOTE)}`).join('\n')}
  )
  _arguments -C \\
${zshFlags(program.flags)} \\
    '1:command:->command' \\
    '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
${commands.map(zshCase).join('\n')}
      esac ;;
  esac
}
# Loaded by the completion system from a folder of $fpath, or sourced.
if [[ $funcstack[1] == _${program.name} ]]; then _${program.name} "$@"; else compdef _${program.name} ${program.name}; fi
`
}

function zshCase ({ name, flags, values, isRepeated }: Entry) {
  const argument = values === null
    ? ''
    : ` \\\n    ${quoteForShell(`${isRepeated ? '*' : '1'}:argument:${zshAction(values)}`, POSIX_QUOTE)}`
  return `        ${name}) _arguments -S \\\n${zshFlags(flags)}${argument} ;;`
}

function zshFlags (all: Flag[]) {
  return all.flatMap(({ flags, about, values, isRepeatable }) =>
    flags.map((flag) => {
      const rest = isRepeatable ? '*' : flags.length > 1 ? `(${flags.join(' ')})` : ''
      const value = values === null ? '' : `:value:${zshAction(values)}`
      const name = values !== null && flag.startsWith('--') ? `${flag}=` : flag
      return `    ${quoteForShell(`${rest}${name}[${about.replace(/[\\[\]:]/g, '\\$&')}]${value}`, POSIX_QUOTE)}`
    })
  ).join(' \\\n')
}

function zshAction (values: Values) {
  if (values === 'files') return '_files'
  if (values === 'apps') return `{compadd -- \${(f)"$(${LOOK_UP})"}}`
  return values.length === 0 ? ' ' : `(${values.join(' ')})`
}

/** `entries`: the first one is the program itself */
function fishScript ([program, ...commands]: Entry[]) {
  return [`complete -c ${program.name} -f`,
    ...fishFlags(program.flags).map((words) => lineFor('__fish_use_subcommand', words)),
    ...commands.map(({ name, about }) => lineFor('__fish_use_subcommand', ['-a', name, '-d', fishText(about)])),
    ...commands.flatMap(({ name, flags, values }) =>
      [...fishFlags(flags), ...(values === 'files' ? [['-F']] : values?.length ? [['-a', fishWords(values)]] : [])].map(
        (words) => lineFor(`__fish_seen_subcommand_from ${name}`, words)
      )
    ), ''].join('\n')

  function lineFor (condition: string, words: string[]) {
    return `complete -c ${program.name} -n ${quoteForShell(condition, FISH_QUOTE)} ${words.join(' ')}`
  }
}

function fishFlags (all: Flag[]): string[][] {
  return all.map((
    { flags, about, values }
  ) => [...flags.flatMap((flag) => flag.startsWith('--') ? ['-l', flag.slice(2)] : ['-s', flag.slice(1)]),
    ...(values === null ? [] : values === 'files' ? ['-r', '-F'] : ['-x']),
    ...(values !== 'files' && values?.length ? ['-a', fishWords(values)] : []), '-d', fishText(about)]
  )
}

function fishWords (values: Exclude<Values, 'files'>) {
  return values === 'apps' ? `'(${LOOK_UP})'` : fishText(values.join(' '))
}

function fishText (text: string) {
  return quoteForShell(text.replaceAll('\\', '\\\\'), FISH_QUOTE)
}

/** `quote`: how the shell writes a quote inside of the word */
function quoteForShell (text: string, quote: string) {
  return `'${text.replaceAll('\'', quote)}'`
}
