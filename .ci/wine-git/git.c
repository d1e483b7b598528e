/* `git.exe` for Wine, which runs the system's git. Git for Windows is not available on the test machine, and Wine cannot pass
 * pipes to a program of the system. So the script `serve` starts git, and this program only forwards bytes: it sends the working
 * directory, the arguments, git's environment variables and stdin, and receives stdout, stderr and the exit code. */
#include <winsock2.h>
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static SOCKET server;

static void fail(const char *what) {
    fprintf(stderr, "git.exe: %s: error %d\n", what, (int)GetLastError());
    exit(125);
}

static void send_all(const char *data, size_t size) {
    while (size > 0) {
        int sent = send(server, data, (int)size, 0);
        if (sent <= 0) fail("send");
        data += sent;
        size -= sent;
    }
}

static void receive_all(char *data, size_t size) {
    while (size > 0) {
        int received = recv(server, data, (int)size, 0);
        if (received <= 0) fail("`serve` has closed the connection");
        data += received;
        size -= received;
    }
}

static char header[1 << 20];
static size_t header_size = 4; /* The first 4 bytes are the size. */

/* Each text ends with a zero byte, and each list with an empty text. */
static void append(const wchar_t *text) {
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, header + header_size, (int)(sizeof header - header_size), NULL, NULL);
    if (size <= 0) fail("the command line");
    header_size += size;
}

static DWORD WINAPI copy_stdin(LPVOID unused) {
    static char buffer[65536];
    DWORD size;
    (void)unused;
    while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), buffer, sizeof buffer, &size, NULL) && size > 0) send_all(buffer, size);
    shutdown(server, SD_SEND);
    return 0;
}

int wmain(int argc, wchar_t **argv) {
    static wchar_t directory[32768];
    static char buffer[65536];
    struct sockaddr_in address = {0};
    const char *port = getenv("WINE_GIT_PORT");
    WSADATA wsa;
    unsigned size;

    if (!port || WSAStartup(MAKEWORD(2, 2), &wsa)) fail("WINE_GIT_PORT");
    server = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_port = htons((u_short)atoi(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(server, (struct sockaddr *)&address, sizeof address)) fail("connect");

    GetCurrentDirectoryW(sizeof directory / sizeof *directory, directory);
    append(directory);
    for (int i = 1; i < argc; i++) {
        append(L"+"); /* Prefix each argument, because an empty one would end the list. */
        header_size -= 1;
        append(argv[i]);
    }
    append(L"");
    for (wchar_t *variable = GetEnvironmentStringsW(); *variable; variable += wcslen(variable) + 1) {
        if (!wcsncmp(variable, L"GIT_", 4) || !wcsncmp(variable, L"LC_ALL=", 7)) append(variable);
    }
    append(L"");
    size = (unsigned)header_size - 4;
    memcpy(header, &size, 4);
    send_all(header, header_size);

    CreateThread(NULL, 0, copy_stdin, NULL, 0, NULL);
    for (;;) {
        char kind;
        receive_all(&kind, 1);
        receive_all((char *)&size, 4);
        if (kind == 'x') ExitProcess(size);
        while (size > 0) {
            unsigned part = size < sizeof buffer ? size : sizeof buffer;
            DWORD written;
            receive_all(buffer, part);
            if (!WriteFile(GetStdHandle(kind == 'e' ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE), buffer, part, &written, NULL)) {
                ExitProcess(128); /* The reader has closed the pipe. */
            }
            size -= part;
        }
    }
}
