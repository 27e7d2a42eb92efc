/** What people type who come from PM2 and is nothing here, and what does that. */
const PM2_WORDS: Readonly<Record<string, string>> = Object.freeze({ monit: 'clusterdeck top shows all apps live',
  reload: 'clusterdeck deploy takes the code on disk, clusterdeck restart the same code again; no request is dropped',
  save: 'nothing is to be saved, as the host remembers its apps',
  resurrect: 'clusterdeck host --detach brings back the apps of the host',
  startup: 'clusterdeck install has systemd start the apps at every boot',
  unstartup: 'clusterdeck uninstall undoes clusterdeck install', flush: 'nothing is to be emptied, as logs are rotated',
  show: 'clusterdeck describe shows an app',
  kill: 'clusterdeck kill <worker> kills one that status lists; clusterdeck down --all ends the host with all its apps',
  'start -i': '--workers <n> says how many; without it there is one for each CPU',
  'start --instances': '--workers <n> says how many; without it there is one for each CPU' })
const REFUSAL = /^(?:unknown (?<kind>command|option)|missing required argument) "(?<given>[^"]+)"/

/** `line`: what is wrong with a command line; `command`: its first word. Returns it with what is to be typed, if known. */
export function inPlaceOf (line: string, command = ''): string {
  const { 0: refusal, groups: { kind, given } = {} } = REFUSAL.exec(line) ?? { 0: '' }
  const word = kind === 'option' ? `${command} ${given}` : command
  return refusal && Object.hasOwn(PM2_WORDS, word) ? `${refusal}; ${PM2_WORDS[word]}` : line
}

/** PM2 has the word `all` in place of the name of an app. `name`: of no app */
export function forAll (command: string, name: string): string {
  return name === 'all' ? `; for all apps: clusterdeck ${command} --all` : ''
}
