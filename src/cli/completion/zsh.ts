import { followWords, valuesText } from './bash.ts'
import { ASKED, type CommandPlace } from './places.ts'

/** `'--json:print JSON'` */
const described = (words: readonly { readonly name: string; readonly description: string }[]): string =>
  words.map(({ name, description }) => `'${`${name}:${description}`.replaceAll("'", `'\\''`)}'`).join(' ')

/** Can be sourced, or stand in a folder of $fpath as _servo. */
export function zshScript(places: readonly CommandPlace[]): string {
  const cases = places.map(
    (place) =>
      `    ('${place.where}') commands=(${described(place.commands)}) flags=(${described(place.flags)}) values='${valuesText(place)}' argument='${place.argument}' ;;`,
  )
  return `#compdef servo
# Completes servo in zsh: source <(servo completion zsh)
_servo() {
  local where='' values='' argument='' kind='' word
  local flag="\${words[CURRENT-1]}" current="\${words[CURRENT]}"
  local -a commands flags found
  for word in "\${(@)words[2,CURRENT-1]}"; do
    ${followWords(places)}
  done
  case "$where" in
${cases.join('\n')}
  esac
  if [[ "$current" == --*=* ]]; then
    flag="\${current%%=*}" current="\${current#*=}" argument='' commands=()
    compset -P '*='
  fi
  # A flag may follow one whose value can be left out.
  if [[ "$current" == -* && "\${words[CURRENT]}" != --*=* ]]; then
    _describe -o 'flag' flags
    return
  elif [[ "$values" == *" $flag="* ]]; then
    kind="\${values#*" $flag="}"
    kind="\${kind%% *}"
  elif (( \${#commands} )); then
    _describe 'command' commands
    return
  else
    kind="$argument"
  fi
  case "$kind" in
    (${ASKED.join('|')})
      found=(\${(f)"$("\${(Q)words[1]}" complete -- "$kind" "\${(Q)current}" "\${(@Q)words[2,CURRENT-1]}" 2> /dev/null)"})
      compadd -a found
      ;;
    (folder) _files -/ ;;
    (some-of:*)
      found=(\${(s:,:)kind#some-of:})
      compset -P '*,'
      compadd -S '' -a found
      ;;
    (one-of:*)
      found=(\${(s:,:)kind#one-of:})
      compadd -a found
      ;;
  esac
}
if [[ "\${funcstack[1]}" == _servo ]]; then
  _servo "$@"
else
  compdef _servo servo
fi
`
}
