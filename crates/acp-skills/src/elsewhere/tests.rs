use expect_test::expect_file;

use super::*;

/// Command lines, split at spaces. Words in `«…»` keep theirs.
const LINES: &str = r#"
docker run -i image agent
docker run --rm -i --network host image agent
docker --context x run -i image agent
docker --context=x run -i image
docker -H tcp://h:1 --tls run image agent
docker -D run image
docker container run -i image
docker compose -f a.yaml exec app agent
docker compose run --rm app agent
docker exec -i box agent
docker start -ai box
docker sandbox run claude
docker run
docker
docker build .
docker model run x
docker mcp gateway run
docker --context run
docker --context run build
docker image run x
/usr/local/bin/docker run -i image agent
C:\Program\Docker\docker.exe run -i image agent
DOCKER.EXE run -i image
Docker run -i image
./docker/agent run x
/opt/docker/bin/agent exec x
docker/ run x
my-docker run -i image
agent docker run -i image
agent -- ssh host agent
podman --connection vm run -i image agent
podman --log-level debug exec -it box agent
nerdctl -n ns run -i image agent
docker-compose exec app agent
ssh host agent
ssh host
ssh -p 22 -o X host -- agent
ssh -p22 -tto X=y user@host agent
ssh -T host agent
ssh -R 7000:127.0.0.1:7000 host agent
ssh -- host agent
ssh -4AC -F «my config» host agent
ssh
ssh -V
ssh -Q cipher
ssh -G host
ssh -p 22
ssh -o
ssh --
ssh -
autossh -M 0 host agent
ssh-keygen -t ed25519
ssh-agent agent
sshpass -p secret ssh host agent
wsl agent
wsl -d Ubuntu -u me --cd ~ agent
wsl.exe --distribution Ubuntu -e agent --flag
wsl ~ -- agent
wsl --exec agent
wsl
wsl --list
wsl -l -v
wsl --install Ubuntu
wsl -d Ubuntu
wsl -d
kubectl exec -i pod -- agent
kubectl -n ns --context c exec pod -c app -- agent
kubectl --kubeconfig=a exec pod -- agent
kubectl run -i --image image x -- agent
kubectl get exec
kubectl -n exec get pods
oc exec pod -- agent
devcontainer exec --workspace-folder . agent
devcontainer up --workspace-folder .
npx @devcontainers/cli exec --workspace-folder . agent
npx -y @devcontainers/cli@0.80 exec --workspace-folder . agent
npx -y @zed-industries/claude-code-acp
npx -y devcontainer exec agent
incus exec box -- agent
multipass exec box -- agent
limactl shell default agent
sudo docker run -i image agent
sudo -u me -E docker run -i image
sudo FOO=1 docker run -i image
doas podman run image
env FOO=1 BAR=docker ssh host agent
env -u FOO -i docker run image
env -- docker run image
nice -n 5 ssh host agent
timeout 30 docker run image
nohup env sudo docker run image
sudo -u
env
env A=1
sh -c «docker run -i image agent»
bash -lc «exec ssh host agent»
bash -c
bash script.sh -c
sh -c «cd x && docker run image»
sh --rcfile -c
cmd /c docker.cmd
cmd.exe /C «docker run image»
sh -c «sh -c «sh -c sh»»
env env env env env env env env env env docker run image
claude-agent-acp
node /docker/run/index.js run
chroot /x agent
bwrap --unshare-net docker run x
"#;

/// Splits a line at spaces, except within `«…»`.
fn words(line: &str) -> Vec<OsString> {
    let mut words = vec![String::new()];
    let mut depth = 0;
    for c in line.chars() {
        match c {
            '«' => depth += 1,
            '»' => depth -= 1,
            ' ' if depth == 0 => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().map(Into::into).collect()
}

#[test]
fn commands_by_place() {
    let rows = LINES.trim().lines().map(|line| {
        let place = place(&words(line)).map_or_else(|| "-".to_owned(), |place| format!("{place:?}"));
        format!("{place:<12} {line}\n")
    });
    expect_file!["places.txt"].assert_eq(&rows.collect::<String>());
}

#[test]
fn odd_words_are_no_place() {
    assert_eq!(place(&[]), None);
    assert_eq!(place(&["".into()]), None);
    assert_eq!(place(&["".into(), "run".into(), "x".into()]), None);
    let many: Vec<OsString> = std::iter::repeat_n("env", 100_000).map(Into::into).collect();
    assert_eq!(place(&many), None);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        let broken = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        assert_eq!(place(&[broken(b"/\xff/docker"), "run".into(), broken(b"\xff")]), Some(Place::Container));
        assert_eq!(place(&[broken(b"docker\xff"), "run".into(), "x".into()]), None);
    }
}
