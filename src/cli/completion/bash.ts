import { ASKED, type CommandPlace } from './places.ts'

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** A case of bash and zsh that follows the words of commands, `help` aside. */
export const followWords = (places: readonly CommandPlace[]): string => `case "$where $word" in
      ' help') ;;
      ${places
        .filter(({ where }) => where !== '')
        .map(({ where }) => quoted(where))
        .join('|')}) where="$where $word" ;;
    esac`

/** ` --partition=partition --limit=anything `: what the flags of a command take. */
export const valuesText = ({ flags }: CommandPlace): string =>
  ` ${flags.flatMap(({ name, short, value }) => (value === undefined ? [] : [name, short].flatMap((each) => (each ? `${each}=${value}` : [])))).join(' ')} `

/** For bash 3.2, which macOS has, and later. */
export function bashScript(places: readonly CommandPlace[]): string {
  const cases = places.map((place) => {
    const commands = place.commands.map(({ name }) => name).join(' ')
    const flags = place.flags.map(({ name }) => name).join(' ')
    return `    ${quoted(place.where)}) commands=${quoted(commands)} flags=${quoted(flags)} values=${quoted(valuesText(place))} argument=${quoted(place.argument)} ;;`
  })
  return `# Completes servo in bash: source <(servo completion bash)
_servo_completion() {
  local line=\${COMP_LINE:0:COMP_POINT} where='' commands='' flags='' values='' argument='' kind='' word
  local whole=\${line##*[[:space:]]}
  local current=$whole head='' flag breaks='' cut='' i
  local -a before
  read -ra before <<< "\${line%"$whole"}"
  for word in "\${before[@]:1}"; do
    ${followWords(places)}
  done
  case "$where" in
${cases.join('\n')}
  esac
  flag=\${before[\${#before[@]}-1]}
  if [[ $whole == --*=* ]]; then
    flag=\${whole%%=*} head=$flag= current=\${whole#*=} argument='' commands=''
  fi
  COMPREPLY=()
  # A flag may follow one whose value can be left out.
  if [[ $whole == -* && -z $head ]]; then
    kind=one-of:$flags
  elif [[ $values == *" $flag="* ]]; then
    kind=\${values#*" $flag="}
    kind=\${kind%% *}
  elif [[ -n $commands ]]; then
    kind=one-of:$commands
  else
    kind=$argument
  fi
  if [[ $kind == some-of:* ]]; then
    [[ $current == *,* ]] && head+=\${current%,*},
    kind=one-of:\${kind#some-of:} current=\${current##*,}
  fi
  while IFS= read -r word; do
    # Anybody may have chosen a key; what the shell would take for more than text is quoted. Bash quotes folders itself.
    [[ $kind != folder && $word == *[!A-Za-z0-9_./:=,@%+-]* ]] && printf -v word %q "$word"
    COMPREPLY+=("$head$word")
  done < <(
    case "$kind" in
      (${ASKED.join('|')}) "\${before[0]}" complete -- "$kind" "$current" "\${before[@]:1}" 2> /dev/null ;;
      (folder) compgen -d -- "$current" ;;
      (one-of:*) kind=\${kind#one-of:}; compgen -W "\${kind//,/ }" -- "$current" ;;
    esac
  )
  [[ $kind == folder ]] && compopt -o filenames 2> /dev/null
  # Bash inserts a reply in place of what stands behind the last of these characters.
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
  [[ -n $breaks ]] && cut=\${whole%"\${whole##*[$breaks]}"}
  for i in "\${!COMPREPLY[@]}"; do COMPREPLY[i]=\${COMPREPLY[i]#"$cut"}; done
}
complete -F _servo_completion servo
`
}
