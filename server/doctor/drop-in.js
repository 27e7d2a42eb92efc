import { quoteWord } from '../../public/command-text.js'
import { command } from './finding.js'

/**
 * The line that adds a setting to a unit, whoever has written that.
 * @param {import('./machine.js').Service} service @param {{ isRoot: boolean }} user
 * @param {{ setting: string, file: string, then?: string }} wanted  `then`: what systemd has to do with the unit
 */
export function dropIn ({ name, isOfUser }, { isRoot }, { setting, file, then }) {
  const sudo = isOfUser || isRoot ? '' : 'sudo '
  const systemctl = systemctlOf({ isOfUser }, { isRoot })
  const folder = `${isOfUser ? '~/.config/systemd/user' : '/etc/systemd/system'}/${quoteWord(name)}.d`
  return command(`printf '[Service]\\n${setting}\\n' | ${sudo}install -D -m 644 /dev/stdin ${folder}/${file} && ${systemctl} daemon-reload${then ? ` && ${systemctl} ${then} ${quoteWord(name)}` : ''}`)
}

/** @param {{ isOfUser: boolean }} service @param {{ isRoot: boolean }} user */
export function systemctlOf ({ isOfUser }, { isRoot }) {
  return isOfUser ? 'systemctl --user' : `${isRoot ? '' : 'sudo '}systemctl`
}
