import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { tempFolder } from './folder.ts'

/** What a shell offers for lines as typed so far, once it has really read the script. `files`: it offers those. */
type Ask = (script: string, lines: string[]) => string[][]

/** Calls the function as readline does, which cuts at `=` too. */
const askBash: Ask = (script, lines) => {
  const ask = (line: string) => `ask ${line.split(/ |(?==)|(?<==)/).map((word) => `'${word}'`).join(' ')}`
  return answersOf('bash', ['--norc', '--noprofile'], `
    source '${fileOf(script)}'
    compopt() { if [[ "$*" == '+o default' ]]; then offered=; fi; }
    ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); offered=files; _clusterdeck; printf '%s\\n' "\${COMPREPLY[@]}" $offered ---; }
    if [[ $(complete -p clusterdeck) != *'-o default'* ]]; then exit 1; fi
    ${lines.map(ask).join('\n')}`)
}

const askFish: Ask = (script, lines) => {
  const words = answersOf('fish', [], `
    source '${fileOf(script)}'
    cd '${folderOfOneFile()}'
    ${lines.map((line) => `complete -C '${line}'; echo ---`).join('\n')}`)
  return words.map((each) => each.map((line) => line.split('\t')[0]))
}

/** Zsh completes at a terminal alone, so it is given one, and a key that lists what is offered. */
const askZsh: Ask = (script, lines) => {
  const words = answersOf('zsh', ['-f'], `
    zmodload zsh/zpty
    zpty z zsh -f -i
    wait_for() { REPLY=; local part; while [[ $REPLY != *$1* ]]; do zpty -r z part; REPLY+=$part; done }
    zpty -w z "PROMPT= LISTMAX=10000; stty rows 200 cols 200; autoload -U compinit; compinit -u -D; source '${
    fileOf(script)
  }'; cd '${folderOfOneFile()}'"
    zpty -w z "list() { zle list-choices; zle -R; zle -I; print EN''D; zle kill-whole-line }; zle -N list; bindkey '^X' list; print REA''DY"
    wait_for READY
    ${
    lines.map((line) => `zpty -w -n z '${line}'$'\\x18'; wait_for END; print -r -- $REPLY; print -- ---`).join('\n')
  }`)
  return words.map(([, ...listed]) =>
    listed.flatMap((line) => stripVTControlCharacters(line).split('\r')).filter((line) =>
      !/^clusterdeck( |$)|END$/.test(line)
    ).flatMap((line) => line.split(/ -- /)[0].split(/\s+/)).filter((word) => /\w/.test(word))
  )
}

export const ASK: Readonly<Record<string, Ask>> = Object.freeze({ bash: askBash, zsh: askZsh, fish: askFish })

function answersOf (shell: string, flags: string[], script: string): string[][] {
  const { status, stdout, stderr } = spawnSync(shell, [...flags, '-c', script], { encoding: 'utf8', timeout: 60_000,
    killSignal: 'SIGKILL' })
  if (status !== 0 || stderr !== '') throw new Error(`${shell} ended with ${status}: ${stderr}`)
  return stdout.split(/^---\n/m).slice(0, -1).map((answer) => answer.split('\n').filter(Boolean))
}

function fileOf (script: string) {
  const file = path.join(tempFolder(), 'completion')
  writeFileSync(file, script)
  return file
}

function folderOfOneFile () {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'files'), '')
  return folder
}
