import { quoteWord } from '../../public/command-text.js'
import { asRoot, command } from './finding.js'

/**
 * The line that adds a setting to a unit, whoever has written that.
 * @param {import('./machine.js').Service} service @param {{ isRoot: boolean }} user
 * @param {{ setting: string, file: string, then?: string }} wanted  `then`: what systemd has to do with the unit
 */
export function dropIn ({ name, isOfUser }, user, { setting, file, then }) {
  const systemctl = systemctlOf({ isOfUser }, user)
  const folder = `${isOfUser ? '~/.config/systemd/user' : '/etc/systemd/system'}/${quoteWord(name)}.d`
  const install = `install -D -m 644 /dev/stdin ${folder}/${file}`
  return command(`printf '[Service]\\n${setting}\\n' | ${isOfUser ? install : asRoot(user, install)} && ${systemctl} daemon-reload${then ? ` && ${systemctl} ${then} ${quoteWord(name)}` : ''}`)
}

/** @param {{ isOfUser: boolean }} service @param {{ isRoot: boolean }} user */
export function systemctlOf ({ isOfUser }, user) {
  return isOfUser ? 'systemctl --user' : asRoot(user, 'systemctl')
}
